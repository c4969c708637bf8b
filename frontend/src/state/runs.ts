/** The order of runs in the overview. */
import type { Run } from "@/client/messages";

export const orders = {
  seen: "as first seen",
  time: "by time spent",
  steps: "by steps",
  recent: "by last step",
} as const;

export type RunOrder = keyof typeof orders;

/** Seconds in all of the run's steps. */
export function timeSpent(run: Run): number {
  return run.steps * (run.mean_s ?? 0);
}

const measure: Record<RunOrder, (run: Run) => number> = {
  seen: (run) => -run.id,
  time: timeSpent,
  steps: (run) => run.steps,
  recent: (run) => run.last_run_at ?? 0,
};

export function sortRuns(runs: readonly Run[], order: RunOrder): Run[] {
  const of = measure[order];
  return [...runs].sort((a, b) => of(b) - of(a) || a.id - b.id);
}
