import { describe, expect, it } from "vitest";
import type { Roof, RooflineRow } from "@/client/messages";
import { linesOf, plotted, pointsOf, scaleOf, ticks, xOf, yOf } from "./rooflineScale";

function row(change: Partial<RooflineRow> = {}): RooflineRow {
  return {
    key: "a",
    op: "MatMul",
    device: "/device:CPU:0",
    kind: "CPU",
    dtype: "float32",
    count: 1,
    total_ns: 100,
    flops: 1e6,
    bytes: 1e5,
    flops_per_s: 1e10,
    bytes_per_s: 1e9,
    intensity: 10,
    of_roof: null,
    judged_by: null,
    node: 0,
    ...change,
  };
}

function roof(dtype: string, rate: number, source: Roof["source"] = "measured"): Roof {
  return { source, device: "CPU", dtype, unit: "", rate, node: -1 };
}

const ROWS = [row(), row({ key: "b", intensity: 0.5, flops_per_s: 2e8, total_ns: 400 })];

describe("the roofline", () => {
  it("shows only matrix ops with traffic", () => {
    const none = [row({ flops_per_s: 0, intensity: 0 }), row({ intensity: null })];
    expect(plotted([...ROWS, ...none])).toEqual(ROWS);
  });

  it("has axes of whole powers of ten around points and lines", () => {
    const scale = scaleOf(ROWS, [roof("float32", 2e11), roof("", 1e10)], 700);
    expect([scale.x, scale.y]).toEqual([
      [-1, 2], // the corner is at 20
      [8, 12],
    ]);
    expect(ticks(scale.x, 5)).toEqual([0.1, 1, 10, 100]);
    expect(ticks([0, 12], 5)).toEqual([1, 1e3, 1e6, 1e9, 1e12]);
    expect(scaleOf([], [], 700).x).toEqual([0, 1]);
  });

  it("puts points at their values, as large as their time", () => {
    const scale = scaleOf(ROWS, [], 700);
    const [large, small] = pointsOf(ROWS, scale);
    expect([large?.row.key, small?.row.key]).toEqual(["b", "a"]);
    expect(large!.radius).toBeCloseTo(2 * small!.radius);
    expect(small!.x).toBeGreaterThan(large!.x);
    expect(small!.y).toBeLessThan(large!.y);
    expect(small).toMatchObject({ x: xOf(scale, 10), y: yOf(scale, 1e10) });
  });

  it("draws a line that rises along the memory roof of its source, then is flat", () => {
    const roofs = [roof("float32", 1e11), roof("", 1e10), roof("float64", 5e10), roof("float32", 5e10, "best")];
    const scale = scaleOf(ROWS, roofs, 700);
    const lines = linesOf(ROWS, roofs, scale);
    expect(lines.map((line) => [line.source, line.roof.rate])).toEqual([
      ["measured", 1e11],
      ["best", 5e10],
    ]);
    const corner = `${xOf(scale, 10).toFixed(1)},${yOf(scale, 1e11).toFixed(1)}`;
    expect(lines[0]?.path).toContain(`L${corner}L`);
    expect(lines[1]?.path).not.toContain(corner);
    expect(lines[1]!.y - lines[0]!.y).toBeGreaterThanOrEqual(14);
  });

  it("keeps lines within the axes", () => {
    const steep = linesOf(ROWS, [roof("float32", 1e11), roof("", 1e3)], scaleOf(ROWS, [roof("float32", 1e11)], 700));
    const places = [...steep[0]!.path.matchAll(/[ML]([\d.-]+),([\d.-]+)/g)].map((match) => Number(match[2]));
    expect(places.length).toBeGreaterThan(1);
    for (const y of places) expect(y).toBeLessThanOrEqual(300.1);
  });
});
