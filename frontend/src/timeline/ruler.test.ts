import { describe, expect, it } from "vitest";
import { roundStep, ticks } from "./ruler";

describe("ruler", () => {
  it("steps by 1, 2 and 5", () => {
    expect([0.7, 1, 1.1, 3, 5, 6, 120].map(roundStep)).toEqual([1, 1, 2, 5, 5, 10, 200]);
  });

  it("labels in a unit that fits, all with the same decimals", () => {
    const labels = (t0: number, perPx: number): string[] =>
      ticks(t0, perPx, 1000)
        .filter((t) => t.major)
        .map((t) => t.label);
    expect(labels(0, 5e4)).toContain("10 ms");
    expect(labels(0, 5e4)[0]).toBe("0");
    expect(labels(0, 2)).toContain("1.0 µs");
    expect(labels(0, 2e7)).toContain("10 s");
  });

  it("never gives two ticks the same label, far from zero and near", () => {
    for (const t0 of [0, 123_456, 9.87e9]) {
      for (const perPx of [0.05, 1, 333, 1e5, 1e7]) {
        const marks = ticks(t0, perPx, 1600).filter((t) => t.major);
        expect(new Set(marks.map((t) => t.label)).size, `${t0} ${perPx}`).toBe(marks.length);
      }
    }
  });

  it("keeps labels apart and inside", () => {
    const marks = ticks(777, 13.7, 1200).filter((t) => t.major);
    for (let i = 1; i < marks.length; i++) expect(marks[i].x - marks[i - 1].x).toBeGreaterThanOrEqual(95.9);
    for (const { x } of marks) expect(x >= -0.001 && x <= 1200.001).toBe(true);
  });
});
