import { describe, expect, it } from "vitest";
import type { Counter } from "@/client/messages";
import { random } from "../../dev/timeline";
import { ALL, placeCounters } from "./counterLayout";
import { paintCounter } from "./counterPainter";
import { CounterSeries, formatSummary } from "./counters";
import { Viewport } from "./viewport";

const bytes = (values: Uint32Array): Uint8Array => new Uint8Array(values.buffer);

function counter(gaps: readonly number[], values: readonly number[]): Counter {
  const column = (numbers: readonly number[]): Counter["value"] => ({
    dtype: "u4",
    data: bytes(Uint32Array.from(numbers)),
  });
  return { key: "running", title: "Ops running", unit: "ops", note: "", gap_ns: column(gaps), value: column(values) };
}

/** Return a counter of many random points: dense at some times, sparse at others. */
function walk(points: number): { gaps: number[]; values: number[]; end: number } {
  const next = random(7);
  const gaps = Array.from({ length: points }, (_, i) => (i === 0 ? 0 : 1 + Math.floor(next() ** 4 * 50)));
  const values = gaps.map(() => Math.floor(next() * 100));
  return { gaps, values, end: gaps.reduce((sum, gap) => sum + gap, 0) + 10 };
}

describe("a counter", () => {
  const { gaps, values, end } = walk(5000);
  const series = new CounterSeries(counter(gaps, values), end);
  const each: number[] = [];
  gaps.forEach((gap, i) => each.push(...Array<number>(i === 0 ? 0 : gap).fill(values[i - 1])));
  each.push(...Array<number>(10).fill(values[values.length - 1]));

  it("has the same least, greatest and mean of any stretch as plain counting", () => {
    const next = random(3);
    for (let k = 0; k < 200; k++) {
      const start = Math.floor(next() * (end - 1));
      const stop = start + 1 + Math.floor(next() ** 3 * (end - start - 1));
      const inside = each.slice(start, stop);
      const summary = series.summary(start, stop);
      expect(summary?.least).toBe(inside.reduce((a, b) => Math.min(a, b)));
      expect(summary?.most).toBe(inside.reduce((a, b) => Math.max(a, b)));
      expect(summary?.mean).toBeCloseTo(inside.reduce((a, b) => a + b, 0) / inside.length, 8);
    }
    expect(series.highest).toBe(Math.max(...values));
  });

  it("has at a moment the value that holds then, and none outside of the step", () => {
    for (const t of [0, 1, 17, end - 1])
      expect(series.summary(t, t)).toEqual({ least: each[t], most: each[t], mean: each[t] });
    expect(series.summary(-20, -1)).toBeNull();
    expect(series.summary(end + 1, end + 5)).toBeNull();
    expect(series.summary(-20, end + 20)?.most).toBe(series.highest);
  });

  it("is written as one value, or as a range with its mean", () => {
    expect(formatSummary("ops", { least: 1, most: 1, mean: 1 })).toBe("1 op");
    expect(formatSummary("ops", { least: 0, most: 4, mean: 1.5 })).toBe("0 ops to 4 ops, mean 1.50 ops");
    expect(formatSummary("share", { least: 1, most: 1, mean: 1 })).toBe("100%");
  });
});

describe("the counters' places", () => {
  const keys = ["running", "ready", "memory-0"];
  const place = (folded: string[], window: number, strip = false): ReturnType<typeof placeCounters> =>
    placeCounters({ keys, folded: new Set(folded), heading: true }, strip, 100, window);

  it("follow each other below the lanes and fill the room that is left", () => {
    const { bands, height } = place([], 330);
    expect(bands.map(({ key }) => key)).toEqual(keys);
    bands.forEach((band, i) => expect(band.top).toBe(i === 0 ? 126 : bands[i - 1].top + bands[i - 1].height));
    expect(100 + height).toBeLessThanOrEqual(330);
    expect(place([], 5000).height).toBeGreaterThan(height);
    expect(place([], 110).bands[0].plotHeight).toBeGreaterThanOrEqual(36); // they scroll if there is no room
  });

  it("fold one by one, and all together", () => {
    const { bands } = place(["ready"], 0);
    expect(bands.map(({ folded }) => folded)).toEqual([false, true, false]);
    expect(bands[1].plotHeight).toBeLessThan(bands[0].plotHeight);
    expect(place([ALL], 0)).toEqual({ bands: [], height: 26 });
  });

  it("leave room for their names above them in a narrow window", () => {
    for (const { top, plotTop } of place([], 0, true).bands) expect(plotTop - top).toBeGreaterThanOrEqual(24);
  });
});

describe("a counter's plot", () => {
  it("has no blank column in the Fit view, whatever the window's width and the step's length", () => {
    for (const end of [8_009_123, 1_000_000, 7_777_777, 123_456_789]) {
      const series = new CounterSeries(counter([0, 1000], [1, 2]), end);
      for (let width = 200; width < 2600; width++) {
        const viewport = new Viewport(end);
        viewport.width = width;
        viewport.fit();
        const scale = viewport.nsPerPx;
        const t0 = Math.round(viewport.t0 / scale) * scale;
        const pixels = new Uint32Array(width * 2);
        paintCounter(series, { pixels, width, first: 0, lines: 2 }, t0, scale, { low: 1, high: 2, spread: 3 });
        const blank = pixels.subarray(width).findIndex((pixel, x) => {
          const middle = t0 + (x + 0.5) * scale;
          return pixel === 0 && middle > 0 && middle < end;
        });
        expect(blank, `${width} px, ${end} ns`).toBe(-1);
      }
    }
  });
});
