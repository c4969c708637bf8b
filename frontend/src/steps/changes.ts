/**
 * Where the usual step time changed for good. Ranks, not times, are compared, so that outliers do not count for more than
 * their place; a change must be both beyond chance and large enough to matter.
 */
import type { Times } from "./times";
import { entries } from "./times";

export interface Change {
  /** The first step of the new regime. */
  readonly step: number;
  readonly before: number; // median seconds
  readonly after: number;
}

/** Points that are compared; longer histories are thinned to medians. */
const POINTS = 400;
/** On either side of a change. */
const FEWEST = 8;
/** Standard deviations of the rank sum: the best of 400 splits of pure noise stays below 4. */
const BEYOND_CHANCE = 5;
const LEAST_CHANGE = 0.05;
const MOST_CHANGES = 8;

interface Point {
  readonly step: number;
  readonly time: number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function points(times: Times): Point[] {
  const chosen = entries(times, 0, Infinity, true);
  const size = Math.max(1, Math.ceil(chosen.length / POINTS));
  const all: Point[] = [];
  for (let i = 0; i < chosen.length; i += size) {
    const group = chosen.slice(i, i + size);
    all.push({ step: times.step[group[0]!]!, time: median(group.map((e) => times.mean[e]!)) });
  }
  return all;
}

/** Ranks from 1; equal times share the mean of theirs. */
function ranks(values: readonly Point[]): Float64Array {
  const order = values.map((_, i) => i).sort((a, b) => values[a]!.time - values[b]!.time);
  const result = new Float64Array(values.length);
  for (let i = 0; i < order.length;) {
    let j = i;
    while (j + 1 < order.length && values[order[j + 1]!]!.time === values[order[i]!]!.time) j++;
    for (let k = i; k <= j; k++) result[order[k]!] = (i + j) / 2 + 1;
    i = j + 1;
  }
  return result;
}

/** The split whose sides differ most in rank, and by how many standard deviations (Mann-Whitney). */
function bestSplit(values: readonly Point[]): { at: number; z: number } {
  const n = values.length;
  const rank = ranks(values);
  let sum = 0;
  let best = { at: -1, z: 0 };
  for (let i = 0; i < n - FEWEST; i++) {
    sum += rank[i]!;
    const left = i + 1;
    if (left < FEWEST) continue;
    const z = Math.abs(sum - (left * (n + 1)) / 2) / Math.sqrt((left * (n - left) * (n + 1)) / 12);
    if (z > best.z) best = { at: left, z };
  }
  return best;
}

function split(values: readonly Point[], found: number[], offset: number): void {
  if (values.length < 2 * FEWEST || found.length >= MOST_CHANGES) return;
  const { at, z } = bestSplit(values);
  if (at < 0 || z < BEYOND_CHANCE) return;
  const before = median(values.slice(0, at).map((p) => p.time));
  const after = median(values.slice(at).map((p) => p.time));
  if (Math.abs(after / before - 1) < LEAST_CHANGE) return;
  found.push(offset + at);
  split(values.slice(0, at), found, offset);
  split(values.slice(at), found, offset + at);
}

/** In order of steps. The medians are those of the stretches between neighbouring changes. */
export function changes(times: Times): Change[] {
  const all = points(times);
  const found: number[] = [];
  split(all, found, 0);
  found.sort((a, b) => a - b);
  const edges = [0, ...found, all.length];
  const medians = edges.slice(1).map((end, i) => median(all.slice(edges[i]!, end).map((p) => p.time)));
  return found.map((at, i) => ({ step: all[at]!.step, before: medians[i]!, after: medians[i + 1]! }));
}
