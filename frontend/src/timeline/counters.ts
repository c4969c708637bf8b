/**
 * Counters of a trace: step functions of time with all their changes, a few million points at most. Pyramids of the least and
 * the greatest values, and running sums, give the summary of any stretch of time in a few dozen operations.
 */
import { typedArray, type TypedArray } from "@/client/columns";
import type { Counter, Counters, CounterUnit, MissingCounter } from "@/client/messages";
import { formatBytes, formatCount, formatShare, significant } from "@/format";

const FAN_OUT = 16;

/** A counter's values in a stretch of time. */
export interface Summary {
  least: number;
  most: number;
  /** Weighted by time. */
  mean: number;
}

/** The counters of a trace, and the counters that it cannot have. */
export interface CounterSet {
  readonly series: readonly CounterSeries[];
  readonly missing: readonly MissingCounter[];
}

export function counterSet(message: Counters, endNs: number): CounterSet {
  return { series: message.counters.map((counter) => new CounterSeries(counter, endNs)), missing: message.missing };
}

export class CounterSeries {
  readonly key: string;
  readonly title: string;
  readonly unit: CounterUnit;
  readonly note: string;
  /** The greatest value of the whole step. */
  readonly highest: number;
  /** [points] ns, ascending, the first 0. */
  private readonly time: Float64Array;
  /** [points] the value from each time to the next. */
  private readonly value: TypedArray;
  /** [points] the sum of value times ns before each point. */
  private readonly sum: Float64Array;
  /** leasts[k][b]: the least value in block b of 16^(k+1) points. `mosts`: the greatest values. */
  private readonly leasts: Float64Array[] = [];
  private readonly mosts: Float64Array[] = [];

  constructor(
    counter: Counter,
    readonly endNs: number,
  ) {
    this.key = counter.key;
    this.title = counter.title;
    this.unit = counter.unit;
    this.note = counter.note;
    const gap = typedArray(counter.gap_ns);
    const value = typedArray(counter.value);
    this.value = value;
    this.time = new Float64Array(gap.length);
    this.sum = new Float64Array(gap.length);
    let time = 0;
    let sum = 0;
    for (let i = 0; i < gap.length; i++) {
      time += gap[i];
      if (i > 0) sum += value[i - 1] * gap[i];
      this.time[i] = time;
      this.sum[i] = sum;
    }
    this.buildLevels();
    this.highest = value.length === 0 ? 0 : this.mostOf(0, value.length);
  }

  get points(): number {
    return this.time.length;
  }

  /** Return the last point at or before t, searched from `from` on: by doubling steps, then by bisection. */
  pointAt(t: number, from = 0): number {
    const { time } = this;
    let step = 1;
    let low = from;
    let high = from + 1;
    while (high < time.length && time[high] <= t) {
      low = high;
      high += step;
      step *= 2;
    }
    high = Math.min(high, time.length);
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (time[middle] <= t) low = middle;
      else high = middle;
    }
    return low;
  }

  /** Return the last point before t, or `from`. A point at the end of a stretch does not belong to the stretch. */
  pointBefore(t: number, from: number): number {
    const point = this.pointAt(t, from);
    return point > from && this.time[point] >= t ? point - 1 : point;
  }

  valueOf(point: number): number {
    return this.value[point];
  }

  /** Return the least value of the points from `from` to before `to`. */
  leastOf(from: number, to: number): number {
    return this.extreme(from, to, this.leasts, Math.min, Infinity);
  }

  /** Return the greatest value of the points from `from` to before `to`. */
  mostOf(from: number, to: number): number {
    return this.extreme(from, to, this.mosts, Math.max, -Infinity);
  }

  /** Return the mean, weighted by time, from t0 to t1. `first`: the last point at or before t0; `last`: the last before t1. */
  meanOf(t0: number, t1: number, first: number, last: number): number {
    if (first === last) return this.value[first];
    return (this.sumAt(t1, last) - this.sumAt(t0, first)) / (t1 - t0);
  }

  /** Return the sum of value times ns from 0 to t. `point` is the last one at or before t. */
  private sumAt(t: number, point: number): number {
    return this.sum[point] + this.value[point] * (t - this.time[point]);
  }

  /** Return the summary of t0..t1, clipped to the step; null if nothing is left. If t0 is t1, the value at that moment. */
  summary(t0: number, t1: number): Summary | null {
    const start = Math.max(0, t0);
    const end = Math.min(this.endNs, t1);
    if (start > end || this.points === 0) return null;
    const first = this.pointAt(start);
    const last = this.pointBefore(end, first);
    const least = this.leastOf(first, last + 1);
    const most = this.mostOf(first, last + 1);
    return { least, most, mean: this.meanOf(start, end, first, last) };
  }

  private buildLevels(): void {
    let below: readonly [TypedArray, TypedArray] = [this.value, this.value];
    while (below[0].length > FAN_OUT) {
      const leasts = new Float64Array(Math.ceil(below[0].length / FAN_OUT)).fill(Infinity);
      const mosts = new Float64Array(leasts.length).fill(-Infinity);
      for (let i = 0; i < below[0].length; i++) {
        const block = (i / FAN_OUT) | 0;
        if (below[0][i] < leasts[block]) leasts[block] = below[0][i];
        if (below[1][i] > mosts[block]) mosts[block] = below[1][i];
      }
      this.leasts.push(leasts);
      this.mosts.push(mosts);
      below = [leasts, mosts];
    }
  }

  private extreme(
    from: number,
    to: number,
    levels: readonly Float64Array[],
    better: (a: number, b: number) => number,
    none: number,
  ): number {
    let best = none;
    let i = from;
    while (i < to) {
      let level = -1;
      let span = 1;
      while (level + 1 < levels.length && i % (span * FAN_OUT) === 0 && i + span * FAN_OUT <= to) {
        level++;
        span *= FAN_OUT;
      }
      best = better(best, level < 0 ? this.value[i] : levels[level][i / span]);
      i += span;
    }
    return best;
  }
}

/** A counter's value with its unit: `12 ops`, `2.5 ops`, `1.54 MB`, `100%`. */
export function formatCounter(unit: CounterUnit, value: number): string {
  switch (unit) {
    case "ops":
      return `${Number.isInteger(value) ? formatCount(value) : significant(value)} ${value === 1 ? "op" : "ops"}`;
    case "bytes":
      return formatBytes(value);
    case "share":
      return formatShare(value);
  }
}

/** Return one value, or the least and the greatest with the mean. */
export function formatSummary(unit: CounterUnit, { least, most, mean }: Summary): string {
  if (least === most) return formatCounter(unit, least);
  return `${formatCounter(unit, least)} to ${formatCounter(unit, most)}, mean ${formatCounter(unit, mean)}`;
}
