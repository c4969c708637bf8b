import { describe, expect, it } from "vitest";
import { chartData, chartOptions } from "./chart";
import type { Times } from "./times";

const SHORT = 0.04;
const STALL = 0.39;

/** Return times with an entry for each of the counts of steps, each with one stall. */
function aggregated(...counts: number[]): Times {
  const columns = <T>(figureOf: (count: number) => T): T[] => counts.map(figureOf);
  const mean = columns((n) => (n === 1 ? STALL : (SHORT * (n - 1) + STALL) / n));
  return {
    length: counts.length,
    step: Float64Array.from(counts, (_, i) => 1 + 64 * i),
    count: Float64Array.from(counts),
    startAt: new Float64Array(counts.length),
    mean: Float64Array.from(mean),
    min: Float64Array.from(columns((n) => (n === 1 ? STALL : SHORT))),
    max: new Float64Array(counts.length).fill(STALL),
    traced: new Set(),
  };
}

describe("the step chart", () => {
  it("marks whole steps on its axis, however few there are", () => {
    const look = { line: "", mean: "", band: "", mark: "", stall: "", event: "", grid: "", text: "", font: "" };
    const marks = { traced: new Set<number>(), kept: [], stalls: [], events: [], changes: [] };
    const [steps] = chartOptions({
      width: 1,
      height: 1,
      look,
      marks: () => marks,
      top: () => 1,
      onRange: () => {},
    }).axes!;
    expect((steps!.incrs as number[]).every(Number.isInteger)).toBe(true);
  });

  it("draws a constant stall as a constant one, however many steps an entry stands for", () => {
    const [, longest, shortest, others] = chartData(aggregated(64, 16, 2, 1));
    expect([...longest!]).toEqual([STALL, STALL, STALL, STALL]);
    expect([...shortest!]).toEqual([SHORT, SHORT, SHORT, STALL]);
    for (const mean of [...others!].slice(0, 3)) expect(mean).toBeCloseTo(SHORT, 9);
    expect(others![3]).toBeNull();
  });
});
