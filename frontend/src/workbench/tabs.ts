/** Which analysis is open under the timeline: kept in the URL, shared by the panels. */
import { inject, provide, type InjectionKey, type Ref } from "vue";
import { oneOf, useParameter } from "@/state/url";
import type { Tab } from "./analyses";

export interface Tabs {
  /** Those that there are. */
  readonly names: readonly Tab[];
  readonly open: Ref<Tab>;
}

const KEY: InjectionKey<Tabs> = Symbol("tabs");

/** To be called in the set-up of the view that shows the trace. */
export function provideTabs(names: readonly Tab[]): Tabs {
  const tabs = { names, open: useParameter("tab", oneOf(names, "timeline"), "push") };
  provide(KEY, tabs);
  return tabs;
}

export function useTabs(): Tabs {
  const tabs = inject(KEY);
  if (!tabs) throw new Error("no tabs were provided: call provideTabs in the view");
  return tabs;
}
