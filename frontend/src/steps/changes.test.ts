import { describe, expect, it } from "vitest";
import { changes, median } from "./changes";
import type { Times } from "./times";

/** A small generator of its own, so that a failure can be repeated. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function times(mean: readonly number[], traced: readonly number[] = []): Times {
  const means = Float64Array.from(mean);
  return {
    length: mean.length,
    step: Float64Array.from(mean, (_, i) => i + 1),
    count: new Float64Array(mean.length).fill(1),
    startAt: Float64Array.from(mean, (_, i) => i),
    mean: means,
    min: means,
    max: means,
    traced: new Set(traced),
  };
}

const noisy = (n: number, usual: number, next: () => number): number[] =>
  Array.from({ length: n }, () => usual * (0.9 + 0.2 * next()));

describe("changes", () => {
  it("finds none in noise, whatever the seed", () => {
    for (let seed = 1; seed <= 40; seed++) expect(changes(times(noisy(600, 0.04, random(seed))))).toEqual([]);
  });

  it("finds a step up and a step down where they are", () => {
    const next = random(5);
    const found = changes(times([...noisy(200, 0.04, next), ...noisy(150, 0.06, next), ...noisy(250, 0.045, next)]));
    expect(found).toHaveLength(2);
    expect(Math.abs(found[0]!.step - 201)).toBeLessThanOrEqual(4);
    expect(Math.abs(found[1]!.step - 351)).toBeLessThanOrEqual(4);
    expect(found[0]!.after).toBeCloseTo(0.06, 2);
    expect(found[1]!.before).toBe(found[0]!.after);
  });

  it("is not moved by outliers or by traced steps", () => {
    const mean = noisy(400, 0.04, random(9));
    for (let i = 350; i < 400; i += 5) mean[i] = 3;
    const traced = Array.from({ length: 30 }, (_, i) => 100 + i);
    for (const step of traced) mean[step - 1] = 0.4;
    expect(changes(times(mean, traced))).toEqual([]);
  });

  it("leaves alone what is too small to matter or too short to tell", () => {
    const next = random(3);
    expect(changes(times([...noisy(2000, 0.04, next), ...noisy(2000, 0.0412, next)]))).toEqual([]);
    expect(changes(times([1, 1, 1, 2, 2, 2]))).toEqual([]);
    expect(changes(times([]))).toEqual([]);
  });

  it("takes a history of any length", () => {
    const next = random(11);
    const found = changes(times([...noisy(20_000, 0.04, next), ...noisy(20_000, 0.08, next)]));
    expect(found).toHaveLength(1);
    expect(Math.abs(found[0]!.step - 20_001)).toBeLessThanOrEqual(400);
  });
});

describe("median", () => {
  it("is the middle, or between the two in the middle", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });
});
