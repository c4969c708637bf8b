/** Flags: what is special about a trace, compared with the other traces of its run. Each has its reason in words. */
import type { Stall, TraceRecord } from "@/client/messages";
import { formatFactor, formatSeconds } from "@/format";

export interface Flag {
  readonly title: "Cannot be read" | "Incomplete" | "Slow" | "Slow step" | "First step";
  readonly reason: string;
  readonly severity: "error" | "warning" | "info";
}

/** A trace is slow from SLOW_FACTOR times the median of the run's other traced steps, if there are MIN_OTHERS of them. */
const SLOW_FACTOR = 1.5;
const MIN_OTHERS = 3;

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}

function slowFlag(trace: TraceRecord, traces: readonly TraceRecord[]): Flag[] {
  const others = traces.flatMap((other) => (other.id === trace.id ? [] : (other.duration_s ?? [])));
  if (trace.duration_s === null || others.length < MIN_OTHERS) return [];
  const usual = medianOf(others);
  if (!(trace.duration_s >= SLOW_FACTOR * usual)) return [];
  const factor = formatFactor(trace.duration_s, usual);
  const reason = `${factor} the median of the run's ${others.length} other traced steps, ${formatSeconds(usual)}`;
  return [{ title: "Slow", reason, severity: "warning" }];
}

function incompleteFlag(trace: TraceRecord): Flag[] {
  const findings = trace.findings.filter((finding) => finding.severity !== "info");
  if (trace.state !== "broken" && !findings.length) return [];
  const reason = findings.map((finding) => finding.message).join(" ");
  return trace.state === "broken"
    ? [{ title: "Cannot be read", reason, severity: "error" }]
    : [{ title: "Incomplete", reason, severity: "warning" }];
}

/**
 * Return a trace's flags, in this order: cannot be read or incomplete, first step, slow step, slow. `traces`: all traces of
 * the run; `stalls`: slow steps of the run.
 */
export function traceFlags(
  trace: TraceRecord,
  traces: readonly TraceRecord[],
  stalls: readonly Pick<Stall, "trace_id" | "text">[],
): Flag[] {
  const own = stalls.filter((stall) => stall.trace_id === trace.id);
  return [
    ...incompleteFlag(trace),
    ...(trace.step === 1
      ? [{ title: "First step", reason: "TensorFlow also prepares the graph in it", severity: "info" } as const]
      : []),
    ...own.map((stall): Flag => ({ title: "Slow step", reason: stall.text, severity: "warning" })),
    ...slowFlag(trace, traces),
  ];
}

export function flagText({ title, reason }: Flag): string {
  return reason ? `${title}: ${reason}` : title;
}
