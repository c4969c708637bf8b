/** The columns of the tables about a step of several processes. */
import { transferColumns } from "./linkColumns";
import type { ClockOffset, CollectiveRow, JobTensor, Straggler } from "@/client/messages";
import type { TableColumn } from "@/components/table";
import { bytesColumn, countColumn, figureColumn, nsColumn } from "@/components/columns";
import { formatNs } from "@/format";
import { CAUSES, STRAGGLER_PARTS, waitsOf } from "@/job/stragglerParts";

type TitleOf = (id: string) => string;
/** With more processes than this a column for each would be too many. */
const MAX_COLUMNS = 8;

/** Return a column of times that is wide enough for the column titles of these tables. */
function timeColumn<Row>(
  key: string,
  title: string,
  value: (row: Row) => number | null,
  more: Partial<TableColumn<Row>> = {},
): TableColumn<Row> {
  return nsColumn(key, title, value, { width: "minmax(108px, 1fr)", ...more });
}

export function stragglerColumns(titleOf: TitleOf): TableColumn<Straggler>[] {
  return [
    { key: "process", title: "Process", value: (r) => titleOf(r.process), width: "minmax(100px, 1fr)" },
    { key: "cause", title: "Cause", value: (r) => CAUSES[r.cause], width: "116px" },
    timeColumn("waited_for", "Waited for", (r) => r.waited_for_ns, {
      hint: "Mean time that each of the others lost waiting for it",
    }),
    timeColumn("slower", "Longer by", (r) => r.slower_by_ns, {
      hint: "Without collectives: its step beyond the others' median",
    }),
    ...STRAGGLER_PARTS.map((part) =>
      timeColumn<Straggler>(part.key, part.title, part.ns, {
        hint: part.meaning,
        ...(part.width && { width: part.width }),
      }),
    ),
  ];
}

/** Return columns of waits: in a small job one for each process, in a large job the longest wait and its process. */
function waitColumns(titleOf: TitleOf, processes: readonly string[]): TableColumn<CollectiveRow>[] {
  if (processes.length > MAX_COLUMNS) {
    const longest = (r: CollectiveRow): [string, number] | undefined => waitsOf(r.waited_ns)[0];
    const who = (r: CollectiveRow): string => titleOf(longest(r)?.[0] ?? "");
    return [
      timeColumn("waited", "Longest wait", (r) => longest(r)?.[1] ?? 0, { hint: "Of the process that came first" }),
      { key: "who", title: "Waited longest", value: who, width: "minmax(110px, 1fr)" },
    ];
  }
  return processes.map((id) =>
    timeColumn(`waited ${id}`, `${titleOf(id)} waited`, (r) => r.waited_ns[id] ?? null, {
      width: "minmax(128px, 1fr)",
      text: (r) => (r.last === id ? "came last" : id in r.waited_ns ? formatNs(r.waited_ns[id]) : "not in it"),
    }),
  );
}

const bytes = bytesColumn<CollectiveRow>("bytes", "Bytes", (r) => r.bytes, {
  hint: "Of its result on one process",
  width: "96px",
});

/** `sized`: whether the bytes of some collectives are known. */
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
    timeColumn("spread", "Spread", (r) => r.spread_ns, {
      hint: "From the first process's arrival to the last's",
      width: "100px",
    }),
    ...waitColumns(titleOf, processes),
  ];
}

export const tensorColumns: readonly TableColumn<JobTensor>[] = [
  ...transferColumns,
  timeColumn("waited", "Waited for", (r) => r.waited_ns, {
    hint: "While it came, the process that received it computed nothing",
    width: "112px",
  }),
];

export function clockColumns(titleOf: TitleOf): TableColumn<ClockOffset>[] {
  return [
    { key: "process", title: "Clock of", value: (r) => titleOf(r.process), width: "minmax(110px, 1fr)" },
    timeColumn("offset", "Offset", (r) => r.offset_ns, {
      hint: "Its clock minus the first process's",
      text: (r) => (r.offset_ns === null ? "unknown" : formatNs(r.offset_ns)),
    }),
    timeColumn("uncertainty", "Uncertainty", (r) => r.uncertainty_ns, {
      hint: "Twice the standard error",
      text: (r) => (r.uncertainty_ns === null ? "–" : `± ${formatNs(r.uncertainty_ns)}`),
    }),
    figureColumn("drift", "Drift", "ppm", (r) => r.drift_ppm, ppm, {
      hint: "How much faster it runs: parts per million",
    }),
    countColumn("matches", "Matches", (r) => r.matches),
  ];
}

function ppm(drift: number): string {
  return `${drift.toFixed(1)} ppm`;
}
