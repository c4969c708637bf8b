/** The columns of a job's tables. */
import type { ClockOffset, CollectiveRow, Straggler } from "@/client/messages";
import type { TableColumn } from "@/components/table";
import { formatBytes, formatCount, formatNs } from "@/format";
import { CAUSES, STRAGGLER_PARTS, waitsOf } from "./parts";

type TitleOf = (id: string) => string;
/** With more processes than this a column for each would be too many. */
const MOST_COLUMNS = 8;

function time<Row>(
  key: string,
  title: string,
  hint: string,
  value: (row: Row) => number,
  width = "minmax(108px, 1fr)",
): TableColumn<Row> {
  return { key, title, hint, numeric: true, unit: "ns", width, value, text: (row) => formatNs(value(row)) };
}

export function stragglerColumns(titleOf: TitleOf): TableColumn<Straggler>[] {
  return [
    { key: "process", title: "Process", value: (r) => titleOf(r.process), width: "minmax(100px, 1fr)" },
    { key: "cause", title: "Cause", value: (r) => CAUSES[r.cause], width: "116px" },
    time("waited_for", "Waited for", "Mean time that each of the others lost waiting for it", (r) => r.waited_for_ns),
    time("slower", "Longer by", "Without collectives: its step beyond the others' median", (r) => r.slower_by_ns),
    ...STRAGGLER_PARTS.map((part) =>
      time<Straggler>(part.key, part.title, part.meaning, part.ns, "minmax(150px, 1fr)"),
    ),
  ];
}

/** Who waited how long: a column for each process of a small job, the longest wait of a large one. */
function waits(titleOf: TitleOf, processes: readonly string[]): TableColumn<CollectiveRow>[] {
  if (processes.length > MOST_COLUMNS) {
    const longest = (r: CollectiveRow): [string, number] | undefined => waitsOf(r.waited_ns)[0];
    const who = (r: CollectiveRow): string => titleOf(longest(r)?.[0] ?? "");
    return [
      time("waited", "Longest wait", "Of the process that came first", (r) => longest(r)?.[1] ?? 0),
      { key: "who", title: "Waited longest", value: who, width: "minmax(110px, 1fr)" },
    ];
  }
  return processes.map((id) => ({
    key: `waited ${id}`,
    title: `${titleOf(id)} waited`,
    numeric: true,
    unit: "ns",
    width: "minmax(128px, 1fr)",
    value: (r) => r.waited_ns[id] ?? null,
    text: (r) => (r.last === id ? "came last" : id in r.waited_ns ? formatNs(r.waited_ns[id]) : "not in it"),
  }));
}

const bytes: TableColumn<CollectiveRow> = {
  key: "bytes",
  title: "Bytes",
  numeric: true,
  unit: "B",
  value: (r) => (r.bytes > 0 ? r.bytes : null),
  text: (r) => (r.bytes > 0 ? formatBytes(r.bytes) : "–"),
};

/** `sized`: the bytes of some are known. */
export function collectiveColumns(
  titleOf: TitleOf,
  processes: readonly string[],
  sized: boolean,
): TableColumn<CollectiveRow>[] {
  return [
    { key: "name", title: "Collective", value: (r) => r.name, mono: true, width: "minmax(200px, 3fr)" },
    { key: "op", title: "Op", value: (r) => r.op, width: "minmax(130px, 1fr)" },
    ...(sized ? [bytes] : []),
    { key: "last", title: "Came last", value: (r) => titleOf(r.last), width: "minmax(100px, 1fr)" },
    time("spread", "Spread", "From the first process's arrival to the last's", (r) => r.spread_ns, "100px"),
    ...waits(titleOf, processes),
  ];
}

export function clockColumns(titleOf: TitleOf): TableColumn<ClockOffset>[] {
  const unknown = (r: ClockOffset): boolean => r.uncertainty_ns < 0;
  return [
    { key: "process", title: "Clock of", value: (r) => titleOf(r.process), width: "minmax(110px, 1fr)" },
    {
      ...time<ClockOffset>("offset", "Offset", "Its clock minus the first process's", (r) => r.offset_ns),
      text: (r) => (unknown(r) ? "not known" : formatNs(r.offset_ns)),
    },
    {
      key: "uncertainty",
      title: "Give or take",
      hint: "Twice the standard error",
      numeric: true,
      unit: "ns",
      width: "minmax(108px, 1fr)",
      value: (r) => (unknown(r) ? null : r.uncertainty_ns),
      text: (r) => (unknown(r) ? "–" : `± ${formatNs(r.uncertainty_ns)}`),
    },
    {
      key: "drift",
      title: "Drift",
      hint: "How much faster it runs: millionths",
      numeric: true,
      unit: "ppm",
      width: "minmax(96px, 1fr)",
      value: (r) => r.drift_ppm,
      text: (r) => (r.drift_ppm === 0 ? "–" : `${r.drift_ppm.toFixed(1)} ppm`),
    },
    {
      key: "matches",
      title: "Matches",
      hint: "Ends of collectives and of transfers that tell it",
      numeric: true,
      width: "minmax(80px, 1fr)",
      value: (r) => r.matches,
      text: (r) => formatCount(r.matches),
    },
  ];
}
