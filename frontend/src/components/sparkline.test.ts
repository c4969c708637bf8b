import { describe, expect, it } from "vitest";
import { ceiling, points } from "./sparkline";

describe("a sparkline", () => {
  it("is not flattened by one slow step", () => {
    const values = [...new Array<number>(50).fill(1), 100];
    expect(ceiling(values)).toBeLessThan(4);
    const corners = points(values, 100, 30);
    expect(corners).toHaveLength(51);
    for (const [x, y] of corners) {
      expect(x).toBeGreaterThanOrEqual(0);
      expect(x).toBeLessThanOrEqual(100);
      expect(y).toBeGreaterThanOrEqual(0);
      expect(y).toBeLessThanOrEqual(30);
    }
  });

  it("accepts no value, one value and zeros", () => {
    expect(points([], 100, 30)).toEqual([]);
    expect(points([5], 100, 30)).toHaveLength(1);
    expect(ceiling([0, 0])).toBe(1);
  });
});
