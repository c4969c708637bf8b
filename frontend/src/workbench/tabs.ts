/** Which analysis is open below the timeline: kept in the URL, shared by the panels. */
import { inject, provide, type InjectionKey, type Ref } from "vue";
import { oneOf, useParameter } from "@/state/url";
import type { Tab } from "./analyses";

export interface Tabs {
  /** The tabs of this trace. */
  readonly names: readonly Tab[];
  readonly open: Ref<Tab>;
}

const KEY: InjectionKey<Tabs> = Symbol("tabs");

/** Create the tabs. Call it in the setup of the view that shows the trace. */
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
