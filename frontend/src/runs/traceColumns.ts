/** The columns of the table of a run's traces. */
import type { TraceRecord } from "@/client/messages";
import { bytesColumn, secondsColumn } from "@/components/columns";
import type { TableColumn } from "@/components/table";
import { formatCount, formatFactor, formatTime, NONE } from "@/format";
import { ASKED_BY, traceName, VS_MEDIAN } from "@/state/names";
import { flagText, type Flag } from "./traceFlags";

/** Widths of columns with sentences, and of such a column while it is empty. The tooltip has a sentence that does not fit. */
const WIDE = "minmax(220px, 2fr)";
const WIDEST = "minmax(280px, 6fr)";
const EMPTY = "112px";

export function headline(trace: TraceRecord): string {
  if (trace.headline || trace.state === "broken") return trace.headline;
  return trace.state === "ready" ? "Open it to see" : "Analyzing…";
}

export function traceColumns(
  flags: (trace: TraceRecord) => readonly Flag[],
  canCompare: boolean,
  traces: readonly TraceRecord[],
): TableColumn<TraceRecord>[] {
  const hasFlags = traces.some((trace) => flags(trace).length);
  const hasNotes = traces.some((trace) => trace.note);
  const factor = (trace: TraceRecord): number | null =>
    trace.duration_s !== null && trace.median_s ? trace.duration_s / trace.median_s : null;
  return [
    ...(canCompare
      ? [
          {
            key: "compare",
            title: "Compare",
            width: "92px",
            value: () => null,
            hint: "Pick two traces to compare them",
          },
        ]
      : []),
    { key: "step", title: "Step", numeric: true, width: "72px", value: (t) => t.step, text: traceName },
    {
      key: "time",
      title: "Time",
      width: "minmax(84px, 112px)",
      value: (t) => t.started_at || null,
      text: (t) => formatTime(t.started_at),
    },
    secondsColumn("duration", "Duration", (t) => t.duration_s, { width: "100px" }),
    {
      key: "factor",
      title: "vs median",
      numeric: true,
      width: "104px",
      value: factor,
      text: (t) => formatFactor(t.duration_s, t.median_s),
      hint: VS_MEDIAN,
    },
    {
      key: "asked",
      title: "Why traced",
      width: "minmax(104px, 140px)",
      value: (t) => ASKED_BY[t.asked_by],
      hint: "Traces that were asked for stay; of the others keep_traces stay, the newest and the slowest",
    },
    {
      key: "nodes",
      title: "Nodes",
      numeric: true,
      width: "80px",
      value: (t) => t.nodes,
      text: (t) => (t.nodes === null ? NONE : formatCount(t.nodes)),
    },
    {
      key: "flags",
      title: "Flags",
      width: hasFlags ? WIDE : EMPTY,
      value: (t) => flags(t).map(flagText).join("; ") || null,
      hint: "Slower than the run's other traced steps, incomplete, a slow step, the first step",
    },
    { key: "headline", title: "What holds it back", width: WIDEST, value: headline },
    { key: "note", title: "Note", width: hasNotes ? WIDE : EMPTY, value: (t) => t.note || null },
    bytesColumn("size", "Size", (t) => t.bytes, { width: "80px" }),
  ];
}
