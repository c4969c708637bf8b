/** Tabs that have nothing to show for a trace, each with the reason, which the tab bar shows before they are opened. */
import type { CounterSet } from "@/timeline/counters";
import { Kind, type TimelineModel } from "@/timeline/model";
import type { Tab } from "./analyses";

export type EmptyTabs = Partial<Record<Tab, string>>;

/** `counters`: null until they are loaded; until then it is not known whether the trace records memory. */
export function emptyTabs(model: TimelineModel, counters: CounterSet | null): EmptyTabs {
  const empty: EmptyTabs = {};
  if (!model.kind.includes(Kind.COMMUNICATION)) empty.communication = "Nothing was communicated in this step";
  if (!model.delay.some((delay) => delay >= 0)) empty.scheduling = "This trace has no scheduling times";
  if (model.findings.some(({ code }) => code === "no_function_graph"))
    empty.graph = "This trace records no dependencies";
  if (!model.hasCostGraph) empty.cost = "This trace has no cost graph";
  if (counters && !counters.series.some(({ key }) => key.startsWith("memory")))
    empty.memory = "This trace records no allocation";
  return empty;
}
