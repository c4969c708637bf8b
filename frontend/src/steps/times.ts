/** A run's step times as columns, and what is computed from them. All functions are pure. */
import { typedArray } from "@/client/columns";
import type { StepTimes } from "@/client/messages";

/** Entry i stands for `count[i]` steps from `step[i]` on. Times are in seconds; `startAt` is a time since the epoch. */
export interface Times {
  readonly length: number;
  readonly step: Float64Array;
  readonly count: Float64Array;
  readonly startAt: Float64Array;
  readonly mean: Float64Array;
  readonly min: Float64Array;
  readonly max: Float64Array;
  readonly traced: ReadonlySet<number>;
}

export function timesOf(message: StepTimes): Times {
  const doubles = (name: "step" | "count" | "start_at" | "mean_s" | "min_s" | "max_s"): Float64Array =>
    Float64Array.from(typedArray(message[name]));
  const step = doubles("step");
  return {
    length: step.length,
    step,
    count: doubles("count"),
    startAt: doubles("start_at"),
    mean: doubles("mean_s"),
    min: doubles("min_s"),
    max: doubles("max_s"),
    traced: new Set(typedArray(message.traced)),
  };
}

/** Return whether entry i is one traced step, which is slower because it was traced. */
export function isTraced(times: Times, i: number): boolean {
  return times.count[i] === 1 && times.traced.has(times.step[i]!);
}

/** Return the indices of the entries that touch a range of steps, both ends included. `untraced` leaves out traced steps. */
export function entries(times: Times, from: number, to: number, untraced = false): number[] {
  const indices: number[] = [];
  for (let i = 0; i < times.length; i++) {
    const inside = times.step[i]! + times.count[i]! > from && times.step[i]! <= to;
    if (inside && !(untraced && isTraced(times, i))) indices.push(i);
  }
  return indices;
}

/** A step time in seconds, and how many steps took it. */
export interface Sample {
  readonly time: number;
  readonly steps: number;
}

/**
 * Return the step times of the entries, shortest first. An entry of several steps gives its shortest and longest time, and the
 * mean of its other steps, so that one slow step among 64 is still one slow step.
 */
export function samples(times: Times, chosen: readonly number[]): Sample[] {
  const all: Sample[] = [];
  for (const i of chosen) {
    const [steps, mean, min, max] = [times.count[i]!, times.mean[i]!, times.min[i]!, times.max[i]!];
    if (steps === 1) all.push({ time: mean, steps });
    else {
      all.push({ time: min, steps: 1 }, { time: max, steps: 1 });
      if (steps > 2) all.push({ time: (mean * steps - min - max) / (steps - 2), steps: steps - 2 });
    }
  }
  return all.sort((a, b) => a.time - b.time);
}

/** Return the quantiles of sorted samples at the given shares (0..1), in seconds; NaN if there are no samples. */
export function quantiles(sorted: readonly Sample[], shares: readonly number[]): number[] {
  const total = sorted.reduce((sum, { steps }) => sum + steps, 0);
  return shares.map((q) => {
    let passed = 0;
    for (const { time, steps } of sorted) {
      passed += steps;
      if (passed >= q * total) return time;
    }
    return NaN;
  });
}

export interface Bin {
  readonly from: number;
  readonly to: number;
  readonly steps: number;
}

/** Return bins of equal width up to the 99.5th percentile; the last bin also counts all steps that took longer. */
export function histogram(sorted: readonly Sample[], bins: number): Bin[] {
  if (sorted.length === 0) return [];
  const [low, high] = quantiles(sorted, [0, 0.995]) as [number, number];
  const width = (high - low) / bins || low / bins || 1e-9;
  const counts = new Array<number>(bins).fill(0);
  for (const { time, steps } of sorted) {
    const bin = Math.min(bins - 1, Math.max(0, Math.floor((time - low) / width)));
    counts[bin]! += steps;
  }
  return counts.map((n, b) => ({ from: low + b * width, to: low + (b + 1) * width, steps: n }));
}
