/** From a sentence of the verdict to where it can be seen. */
import type { Evidence } from "@/client/messages";
import { formatNs } from "@/format";
import type { TraceState } from "@/timeline/state";

/** What a click on the sentence does, in words; "" where it has nothing to show. */
export function leadsTo(evidence: Evidence): string {
  if (evidence.nodes.length > 0) return "Select its most telling op on the timeline";
  if (evidence.start_ns !== undefined && evidence.end_ns !== undefined) {
    return `Show ${formatNs(evidence.start_ns)} to ${formatNs(evidence.end_ns)} on the timeline`;
  }
  if (evidence.op !== undefined && evidence.op !== "") return `Find ${evidence.op}`;
  if (evidence.tab !== undefined) return `Open ${evidence.tab.replace("-", " ")}`;
  return "";
}

export function follow(state: TraceState, evidence: Evidence): void {
  if (evidence.tab !== undefined) state.open(evidence.tab);
  if (evidence.op) state.find(evidence.op);
  const { start_ns: start, end_ns: end } = evidence;
  const placed = start !== undefined && end !== undefined && end > start;
  if (evidence.nodes.length > 0) {
    if (placed) state.node.value = evidence.nodes[0];
    else state.select(evidence.nodes[0]);
  }
  if (placed) state.mark(start, end);
}
