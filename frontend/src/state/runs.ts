/** The order of runs in the overview. */
import type { Run } from "@/client/messages";

export const orders = {
  time: "by time spent",
  seen: "as first seen",
  steps: "by steps",
  recent: "by last step",
} as const;

export type RunOrder = keyof typeof orders;

/** Return the seconds in all of the run's steps; 0 if their mean is not known. */
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
  const measureOf = measure[order];
  return [...runs].sort((a, b) => measureOf(b) - measureOf(a) || a.id - b.id);
}

/** A run is rare if it has one step, or at most FEW_STEPS steps that are at most RARE_SHARE of the busiest run's steps. */
const FEW_STEPS = 5;
const RARE_SHARE = 0.01;

/**
 * Split runs into loops and rare runs, which initialize, save a checkpoint, or ran once. A run with traces, requested traces or
 * slow steps is never rare, and no run is if none has more than FEW_STEPS steps. Keeps the order.
 */
export function splitRuns(runs: readonly Run[]): { loops: Run[]; rare: Run[] } {
  const busiest = Math.max(0, ...runs.map((run) => run.steps));
  const isRare = (run: Run): boolean =>
    run.steps <= Math.max(1, Math.min(FEW_STEPS, RARE_SHARE * busiest)) &&
    busiest > FEW_STEPS &&
    run.traces.length === 0 &&
    run.pending_traces === 0 &&
    run.slow_steps.count === 0;
  return { loops: runs.filter((run) => !isRare(run)), rare: runs.filter(isRare) };
}
