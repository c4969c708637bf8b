/** Flags: what is special about a trace among those of its run, each with its reason in words. */
import type { Stall, TraceRecord } from "@/client/messages";
import { formatFactor, formatSeconds } from "@/format";

export interface Flag {
  readonly title: "Cannot be read" | "Incomplete" | "Slow" | "Slow step" | "First step";
  readonly reason: string;
  readonly severity: "error" | "warning" | "info";
}

/** A trace is slow from this multiple of the median of the run's other traced steps, if there are enough others. */
const SLOW_FACTOR = 1.5;
const MIN_OTHERS = 3;

function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1]! + sorted[sorted.length >> 1]!) / 2;
}

function slow(trace: TraceRecord, traces: readonly TraceRecord[]): Flag[] {
  const others = traces.flatMap((other) => (other.id === trace.id ? [] : (other.duration_s ?? [])));
  if (trace.duration_s === null || others.length < MIN_OTHERS) return [];
  const usual = medianOf(others);
  if (!(trace.duration_s >= SLOW_FACTOR * usual)) return [];
  const factor = formatFactor(trace.duration_s, usual);
  const reason = `${factor} the median of the run's ${others.length} other traced steps, ${formatSeconds(usual)}`;
  return [{ title: "Slow", reason, severity: "warning" }];
}

function lacking(trace: TraceRecord): Flag[] {
  const findings = trace.findings.filter((finding) => finding.severity !== "info");
  if (trace.state !== "broken" && !findings.length) return [];
  const reason = findings.map((finding) => finding.message).join(" ");
  return trace.state === "broken"
    ? [{ title: "Cannot be read", reason, severity: "error" }]
    : [{ title: "Incomplete", reason, severity: "warning" }];
}

/**
 * Return a trace's flags, in this order: cannot be read or incomplete, first step, slow step, slow. `traces`: all of the run;
 * `stalls`: its slow steps.
 */
export function traceFlags(
  trace: TraceRecord,
  traces: readonly TraceRecord[],
  stalls: readonly Pick<Stall, "trace_id" | "text">[],
): Flag[] {
  const own = stalls.filter((stall) => stall.trace_id === trace.id);
  return [
    ...lacking(trace),
    ...(trace.step === 1
      ? [{ title: "First step", reason: "TensorFlow also prepares the graph in it", severity: "info" } as const]
      : []),
    ...own.map((stall): Flag => ({ title: "Slow step", reason: stall.text, severity: "warning" })),
    ...slow(trace, traces),
  ];
}

export function flagText({ title, reason }: Flag): string {
  return reason ? `${title}: ${reason}` : title;
}
