/** Shows the evidence for a sentence of the verdict. */
import type { Ref } from "vue";
import type { Evidence } from "@/client/messages";
import { formatNs } from "@/format";
import type { TraceState } from "@/timeline/state";
import type { Tab } from "./analyses";

/** Return the evidence's range of time; null if it has none, or one without length. */
function rangeOf({ start_ns: start, end_ns: end }: Evidence): readonly [number, number] | null {
  return start !== undefined && end !== undefined && end > start ? [start, end] : null;
}

/** Return what a click on the sentence does, in words; "" if there is nothing to show. */
export function leadsTo(evidence: Evidence): string {
  const range = rangeOf(evidence);
  if (evidence.nodes.length > 0) return "Select its longest op on the timeline";
  if (range !== null) {
    return `Show ${formatNs(range[0])} to ${formatNs(range[1])} on the timeline`;
  }
  if (evidence.op !== undefined && evidence.op !== "") return `Find ${evidence.op}`;
  if (evidence.tab !== undefined) return `Open ${evidence.tab.replace("-", " ")}`;
  return "";
}

/** Show the evidence: open its tab, find its op, and select or mark its node, lane and range on the timeline. */
export function follow(state: TraceState, tab: Ref<Tab>, evidence: Evidence): void {
  if (evidence.tab !== undefined) tab.value = evidence.tab;
  if (evidence.op) state.find(evidence.op);
  const range = rangeOf(evidence);
  const [node] = evidence.nodes;
  const lane = state.model.value?.lanes.find(({ device }) => device === evidence.lane);
  if (node === undefined && lane !== undefined) state.row.value = lane.first_row;
  else if (node !== undefined && range !== null) state.node.value = node;
  else if (node !== undefined) state.select(node);
  if (range !== null) state.mark(...range);
}
