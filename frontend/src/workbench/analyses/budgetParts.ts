/** The parts of a step's budget: order, names and meanings. Their colours are in components/budget.css. */
import type { BudgetPart, DeviceBudget } from "@/client/messages";

export interface Part {
  readonly key: BudgetPart;
  readonly title: string;
  readonly meaning: string;
}

export const PARTS: readonly Part[] = [
  { key: "compute", title: "Compute", meaning: "at least one op or kernel computes" },
  { key: "python", title: "Python functions", meaning: "only Python functions of the step run, or wait" },
  {
    key: "exposed_communication",
    title: "Exposed communication",
    meaning: "only communication runs; the device waits for it",
  },
  { key: "copies", title: "Copies", meaning: "only copies between host and device run" },
  { key: "input", title: "Input", meaning: "only the input pipeline runs" },
  { key: "scheduling", title: "Scheduling", meaning: "nothing runs, but an op is ready and waits for a thread" },
  { key: "launch_gap", title: "Launch gap", meaning: "the GPU idles while the host launches its next kernel" },
  { key: "idle", title: "Idle", meaning: "nothing runs and nothing is ready" },
];

export const HIDDEN_COMMUNICATION: Part = {
  key: "hidden_communication",
  title: "Hidden communication",
  meaning: "communication that runs under compute, and costs the step nothing",
};

/** Return the time of a part; null if unknown (scheduling, in a trace without scheduling times). */
export function partNs(budget: DeviceBudget, key: BudgetPart): number | null {
  return budget.parts_ns[key] ?? null;
}
