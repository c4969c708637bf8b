/** The columns of the tables about slow steps. */
import type { CodeLine, Mark, Stall, StallCause } from "@/client/messages";
import { countColumn, nameColumn, secondsColumn, shareColumn } from "@/components/columns";
import type { TableColumn } from "@/components/table";
import { formatCount, formatFullTime, formatTime, NONE } from "@/format";
import { frameName, framePlace, type LineTotal } from "./stacks";

export const CAUSES: Record<StallCause, string> = {
  gc: "Garbage collection",
  machine: "No CPU",
  disk: "Disk",
  hook: "Hook",
  callback: "Keras callback",
  py_function: "Python function in the graph",
  lock: "Python's lock",
  retrace: "Traced anew",
  other_run: "Another run",
  input: "Next element of a dataset",
  checkpoint: "Checkpoint",
  tensorflow: "TensorFlow's work",
  stopped: "Process stopped",
  wait: "Waiting",
  python: "Python",
  unknown: "Not known",
};
export const WHERE_TEXTS: Record<Stall["where"], string> = { inside: "inside", between: "before the step" };
export const MARK_KINDS: Record<Mark["kind"], string> = {
  gc: "Garbage collection",
  checkpoint: "Checkpoint",
  host: "Machine",
};

/** Return whether any step's number differs from the number of its call. Its text then contains both. */
export const hasCalls = (stalls: readonly Stall[]): boolean => stalls.some((s) => s.call > 0 && s.call !== s.step);

export function stallColumns(withCalls: boolean): TableColumn<Stall>[] {
  return [
    {
      key: "step",
      title: "Step",
      numeric: true,
      width: withCalls ? "minmax(92px, 252px)" : "92px",
      value: (s) => s.step,
      text: (s) => (s.step === null && !s.call ? NONE : s.step_text.replace("step ", "")),
    },
    secondsColumn("duration", "Took", (s) => s.duration_s, { width: "88px" }),
    { key: "cause", title: "Cause", width: "minmax(110px, 210px)", value: (s) => CAUSES[s.cause] },
    {
      key: "line",
      title: "Line",
      mono: true,
      width: "minmax(200px, 2fr)",
      value: (s) => s.place,
      text: (s) => s.place || NONE,
    },
    secondsColumn("expected", "Usual", (s) => s.expected_s, { width: "88px" }),
    { key: "where", title: "Where", width: "112px", value: (s) => WHERE_TEXTS[s.where] },
    {
      key: "at",
      title: "When",
      width: "minmax(96px, 130px)",
      value: (s) => formatFullTime(s.started_at),
      text: (s) => formatTime(s.started_at),
    },
    { key: "trace", title: "Trace", width: "92px", value: (s) => (s.trace_id === null ? "" : "yes") },
  ];
}

export function lineColumns(): TableColumn<CodeLine>[] {
  return [
    shareColumn("share", "Share", (l) => l.share, { bar: (l) => l.share, width: "92px" }),
    nameColumn("line", "Line", (l) => framePlace(l) || NONE, { width: "minmax(150px, 1fr)" }),
    nameColumn("function", "Function", (l) => l.owner || l.function, { width: "minmax(150px, 1fr)" }),
    nameColumn("calls", "Mostly in", (l) => l.calls, { width: "minmax(160px, 1.4fr)" }),
  ];
}

export function totalColumns(): TableColumn<LineTotal>[] {
  return [
    secondsColumn("own", "Own time", (l) => l.own, { width: "96px" }),
    secondsColumn("seconds", "With calls", (l) => l.seconds, { width: "96px" }),
    countColumn("samples", "Samples", (l) => l.samples),
    nameColumn("function", "Function", (l) => frameName(l.frame), { width: "minmax(150px, 1fr)" }),
    nameColumn("place", "Line", (l) => framePlace(l.frame), { width: "minmax(150px, 1fr)" }),
    nameColumn("file", "File", (l) => l.frame.file, { width: "minmax(160px, 2fr)" }),
  ];
}

export function markColumns(): TableColumn<Mark>[] {
  return [
    { key: "kind", title: "Mark", width: "150px", value: (m) => MARK_KINDS[m.kind] },
    {
      key: "step",
      title: "Step",
      numeric: true,
      width: "92px",
      value: (m) => m.step,
      text: (m) => formatCount(m.step),
    },
    {
      key: "at",
      title: "When",
      width: "minmax(96px, 130px)",
      value: (m) => formatFullTime(m.at),
      text: (m) => formatTime(m.at),
    },
    secondsColumn("duration", "Took", (m) => m.duration_s, { width: "88px" }),
    { key: "text", title: "What", width: "minmax(200px, 3fr)", value: (m) => m.text },
  ];
}
