/** Filters lanes by a pattern over their names. */
import type { Lane } from "@/client/messages";
import { parseQuery } from "./search";

export interface LaneFilter {
  /** Ids of lanes. */
  readonly hidden: ReadonlySet<number>;
  /** What is wrong with the pattern, or that no lane matches it; else "". */
  readonly problem: string;
}

/** Match the pattern against each lane's group and title. An invalid pattern hides nothing. */
export function laneFilter(lanes: readonly Lane[], text: string): LaneFilter {
  const query = parseQuery(text, true);
  if (query.kind === "empty") return { hidden: new Set(), problem: "" };
  if (query.kind === "invalid") return { hidden: new Set(), problem: query.message };
  try {
    const hidden = lanes.filter(({ group, title }) => !query.test(group ? `${group} ${title}` : title));
    const problem = hidden.length === lanes.length ? "no lane matches" : "";
    return { hidden: new Set(hidden.map((lane) => lane.id)), problem };
  } catch (error) {
    return { hidden: new Set(), problem: error instanceof Error ? error.message : String(error) };
  }
}
