/** Facts about a trace in one line: its step, how long it took, its size. */
import type { TraceRecord } from "@/client/messages";
import { formatCount, formatNs, formatSeconds, plural, shortDevice } from "@/format";

/** The part of a timeline that the line needs. */
interface Measured {
  readonly durationNs: number;
  readonly nodes: number;
}

/** Return how long the traced step took: as the hook timed it, else from the trace's first start to its last end. */
function length(record: TraceRecord | null, model: Measured | null): string {
  if (record !== null && record.duration_s) return `${formatSeconds(record.duration_s)} traced`;
  return model === null ? "" : `${formatNs(model.durationNs)} from the first op to the last`;
}

/** Return the line. A trace that was loaded without a session has no step number and no measured time. */
export function factsOf(record: TraceRecord | null, model: Measured | null): string {
  const step = record?.step ? `Step ${formatCount(record.step)}` : "";
  const took = length(record, model);
  const usual = record?.median_s ? `usually ${formatSeconds(record.median_s)}` : "";
  const nodes = record?.nodes ?? model?.nodes; // the record of a pending trace does not have it
  const devices = record?.devices ?? [];
  return [
    step && took ? `${step}: ${took}` : step || took,
    usual,
    nodes === undefined ? "" : plural(nodes, "node"),
    devices.length === 1 ? shortDevice(devices[0]!) : devices.length ? `${devices.length} devices` : "",
  ]
    .filter(Boolean)
    .join(" · ");
}
