/** The analyses of a trace as tabs: each loads its code and its answer when it is first opened. */
import { defineAsyncComponent, type Component } from "vue";

export const ANALYSES = {
  ops: { title: "Ops", component: defineAsyncComponent(() => import("./OpsTab.vue")) },
  budget: { title: "Budget", component: defineAsyncComponent(() => import("./BudgetTab.vue")) },
  "critical-path": { title: "Critical path", component: defineAsyncComponent(() => import("./CriticalPathTab.vue")) },
  memory: { title: "Memory", component: defineAsyncComponent(() => import("./MemoryTab.vue")) },
  communication: { title: "Communication", component: defineAsyncComponent(() => import("./CommunicationTab.vue")) },
  scheduling: { title: "Scheduling", component: defineAsyncComponent(() => import("./SchedulingTab.vue")) },
  graph: { title: "Graph", component: defineAsyncComponent(() => import("./GraphTab.vue")) },
  cost: { title: "Cost", component: defineAsyncComponent(() => import("./CostTab.vue")) },
} satisfies Record<string, { title: string; component: Component }>;

export type AnalysisName = keyof typeof ANALYSES;
