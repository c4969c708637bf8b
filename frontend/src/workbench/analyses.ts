/** The tabs of a trace, in their order. To add an analysis, add a line here and the component that it names. */
import type { Component } from "vue";

export interface AnalysisTab {
  readonly title: string;
  /** Loads the tab's component, when it is first opened; null for the timeline, which is always there. */
  readonly load: (() => Promise<{ default: Component }>) | null;
  /** Whether a trace of one process has the tab; `ofJob`: whether a job's trace has it. */
  readonly ofTrace: boolean;
  readonly ofJob: boolean;
}

const ANY = { ofTrace: true, ofJob: true };
const TRACE = { ofTrace: true, ofJob: false };
const JOB = { ofTrace: false, ofJob: true };

export const ANALYSES = {
  timeline: { title: "Timeline", load: null, ...ANY },
  ranks: { title: "Who is slow", load: () => import("./analyses/RanksTab.vue"), ...JOB },
  ops: { title: "Ops", load: () => import("./analyses/OpsTab.vue"), ...ANY },
  layers: { title: "Layers", load: () => import("./analyses/LayersTab.vue"), ...TRACE },
  budget: { title: "Budget", load: () => import("./analyses/BudgetTab.vue"), ...ANY },
  "critical-path": { title: "Critical path", load: () => import("./analyses/CriticalPathTab.vue"), ...ANY },
  roofline: { title: "Roofline", load: () => import("./analyses/RooflineTab.vue"), ...TRACE },
  memory: { title: "Memory", load: () => import("./analyses/MemoryTab.vue"), ...TRACE },
  communication: { title: "Communication", load: () => import("./analyses/CommunicationTab.vue"), ...ANY },
  scheduling: { title: "Scheduling", load: () => import("./analyses/SchedulingTab.vue"), ...ANY },
  graph: { title: "Graph", load: () => import("./analyses/GraphTab.vue"), ...TRACE },
  cost: { title: "Cost", load: () => import("./analyses/CostTab.vue"), ...TRACE },
} as const satisfies Record<string, AnalysisTab>;

export type Tab = keyof typeof ANALYSES;

const ALL = Object.keys(ANALYSES) as Tab[];
export const TRACE_TABS: readonly Tab[] = ALL.filter((tab) => ANALYSES[tab].ofTrace);
export const JOB_TABS: readonly Tab[] = ALL.filter((tab) => ANALYSES[tab].ofJob);
