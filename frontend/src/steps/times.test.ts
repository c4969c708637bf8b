import { describe, expect, it } from "vitest";
import { fakeSteps } from "../../dev/fake";
import { entries, histogram, isTraced, quantiles, samples, timesOf, type Times } from "./times";

function times(mean: readonly number[], count: readonly number[], traced: readonly number[] = []): Times {
  let next = 1;
  const step = count.map((n) => (next += n) - n);
  const means = Float64Array.from(mean);
  const columns = { step: Float64Array.from(step), count: Float64Array.from(count), startAt: Float64Array.from(step) };
  return { ...columns, length: mean.length, mean: means, min: means, max: means, traced: new Set(traced) };
}

describe("step times", () => {
  it("are read from the message as columns", () => {
    const message = fakeSteps(1, 10);
    const read = timesOf(message);
    expect(read.length).toBe(10);
    expect([...read.step.slice(0, 3)]).toEqual([1, 17, 33]);
    expect([...read.count.slice(-2)]).toEqual([1, 1]);
    expect(read.traced).toEqual(new Set([100, 200, 7000]));
  });

  it("are chosen by a range of steps that touches them", () => {
    const t = times([1, 2, 3, 4], [10, 10, 1, 1], [21]);
    expect(entries(t, 1, 22)).toEqual([0, 1, 2, 3]);
    expect(entries(t, 15, 20)).toEqual([1]);
    expect(entries(t, 10, 11)).toEqual([0, 1]);
    expect(entries(t, 1, 22, true)).toEqual([0, 1, 3]);
    expect(isTraced(t, 2)).toBe(true);
  });

  it("are weighted by their number of steps", () => {
    const t = times([1, 2, 100], [10, 89, 1]);
    expect(quantiles(samples(t, [0, 1, 2]), [0, 0.1, 0.11, 0.5, 0.99, 1])).toEqual([1, 1, 2, 2, 2, 100]);
    expect(quantiles([], [0.5])[0]).toBeNaN();
  });

  it("fill a histogram that loses no step", () => {
    const t = times([1, 1.5, 2, 50], [100, 200, 700, 1]);
    const bins = histogram(samples(t, [0, 1, 2, 3]), 10);
    expect(bins.reduce((sum, b) => sum + b.steps, 0)).toBe(1001);
    expect(bins[0]).toMatchObject({ from: 1, steps: 100 });
    expect(bins.at(-1)?.steps).toBe(701);
    expect(histogram([], 10)).toEqual([]);
    expect(histogram(samples(times([5], [3]), [0]), 4).reduce((sum, b) => sum + b.steps, 0)).toBe(3);
  });

  it("keep the length of a constant stall when they are aggregated", () => {
    const raw = Array.from({ length: 970 }, (_, i) => ((i + 1) % 97 === 0 ? 0.39 : 0.04));
    const groups = Array.from({ length: 10 }, (_, g) => raw.slice(g * 97, (g + 1) * 97));
    const mean = groups.map((group) => group.reduce((sum, t) => sum + t, 0) / group.length);
    const aggregated = {
      ...times(mean, new Array<number>(10).fill(97)),
      min: Float64Array.from(groups, (group) => Math.min(...group)),
      max: Float64Array.from(groups, (group) => Math.max(...group)),
    };
    const sorted = samples(
      aggregated,
      groups.map((_, i) => i),
    );
    expect(sorted.reduce((sum, { steps }) => sum + steps, 0)).toBe(970);
    const [shortest, usual, p99, longest] = quantiles(sorted, [0, 0.5, 0.99, 1]);
    expect([shortest, p99, longest]).toEqual([0.04, 0.39, 0.39]);
    expect(usual).toBeCloseTo(0.04, 6);
  });
});
