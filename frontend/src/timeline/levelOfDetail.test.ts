import { describe, expect, it } from "vitest";
import { LEVELS, Palette, Shade, THEMES } from "./colours";
import { modelOf, random, randomRow } from "../../dev/timeline";
import { Labels, LevelIndex, RowPainter, type Colours } from "./levelOfDetail";
import type { TimelineModel } from "./model";
import { coloursOf } from "./resolveColourClashes";

const palette = new Palette(THEMES.light);

function lit(model: TimelineModel): Uint8Array {
  return new Uint8Array(model.count).fill(Shade.NORMAL);
}

function drawnColours(model: TimelineModel): Colours {
  return { slots: coloursOf(model).slotsOf(model), pixels: palette.pixels, edges: palette.edges };
}

/** Return the slots that a row of pixels shows; -1 where nothing was painted. */
function paint(model: TimelineModel, shade: Uint8Array, t0: number, nsPerPx: number, width: number): number[] {
  const out = new Uint32Array(width);
  new RowPainter(model, new LevelIndex(model, shade), drawnColours(model), out, width, t0, nsPerPx).paint(0, 0);
  return Array.from(out, (pixel) => {
    if (pixel === 0) return -1;
    const at = palette.pixels.indexOf(pixel);
    return Math.floor((at < 0 ? palette.edges.indexOf(pixel) * LEVELS : at) / (2 * LEVELS));
  });
}

describe("LevelIndex", () => {
  it("finds the heaviest slice of any range, as a linear search does", () => {
    const row = randomRow(3000, 1);
    const model = modelOf({ rows: [row] });
    const next = random(5);
    const shade = Uint8Array.from(row, () => Math.floor(next() * 3));
    const index = new LevelIndex(model, shade);
    const weight = (i: number): number =>
      shade[i] === Shade.HIDDEN ? -1 : (row[i].duration + 1) * (shade[i] === Shade.DIM ? 1e-15 : 1);
    for (let k = 0; k < 300; k++) {
      const from = Math.floor(next() * row.length);
      const to = from + 1 + Math.floor(next() * (row.length - from));
      let most = -Infinity;
      for (let i = from; i < to; i++) most = Math.max(most, weight(i));
      expect(weight(index.heaviest(from, to))).toBe(most);
    }
  });

  it("counts covered time clipped to a range", () => {
    const model = modelOf({ rows: [[0, 10, 20, 30].map((start) => ({ start, duration: 8 }))] });
    const index = new LevelIndex(model, lit(model));
    expect(index.coverage(0, 4, 0, 40)).toBe(32);
    expect(index.coverage(0, 3, 4, 24)).toBe(4 + 8 + 4);
    index.update(Uint8Array.of(Shade.NORMAL, Shade.HIDDEN, Shade.NORMAL, Shade.NORMAL));
    expect(index.coverage(0, 4, 0, 40)).toBe(24);
  });
});

describe("RowPainter", () => {
  it("paints wide slices from edge to edge and leaves gaps empty", () => {
    const model = modelOf({
      rows: [
        [
          { start: 10, duration: 20, op: "MatMul" },
          { start: 50, duration: 10, op: "Relu" },
        ],
      ],
    });
    const slots = coloursOf(model).slotsOf(model);
    const shown = paint(model, lit(model), 0, 1, 70);
    expect(shown.slice(0, 10)).toEqual(new Array(10).fill(-1));
    expect(shown.slice(10, 30)).toEqual(new Array(20).fill(slots[0]));
    expect(shown.slice(30, 50)).toEqual(new Array(20).fill(-1));
    expect(shown.slice(50, 60)).toEqual(new Array(10).fill(slots[1]));
    expect(shown.slice(60)).toEqual(new Array(10).fill(-1));
  });

  it("shows something in each pixel where anything ran, and nothing where nothing did", () => {
    const row = randomRow(4000, 9);
    const model = modelOf({ rows: [row] });
    for (const nsPerPx of [3, 17, 100, 1000]) {
      const width = 300;
      const t0 = model.durationNs * 0.2;
      const shown = paint(model, lit(model), t0, nsPerPx, width);
      for (let p = 0; p < width; p++) {
        const [begin, end] = [t0 + p * nsPerPx, t0 + (p + 1) * nsPerPx];
        const busy = row.reduce(
          (sum, s) => sum + Math.max(0, Math.min(end, s.start + s.duration) - Math.max(begin, s.start)),
          0,
        );
        if (busy > 0.99 * nsPerPx) expect(shown[p], `pixel ${p} at ${nsPerPx} ns`).not.toBe(-1);
        const near = row.some((s) => s.start < end + nsPerPx && s.start + s.duration > begin - nsPerPx);
        if (!near) expect(shown[p]).toBe(-1);
      }
    }
  });

  it("lets one match among thousands of dimmed slices be seen", () => {
    const row = Array.from({ length: 50_000 }, (_, i) => ({
      start: i * 2,
      duration: 2,
      op: i === 31_234 ? "Conv2D" : "MatMul",
    }));
    const model = modelOf({ rows: [row] });
    const shade = new Uint8Array(model.count).fill(Shade.DIM);
    shade[31_234] = Shade.NORMAL;
    const slots = coloursOf(model).slotsOf(model);
    expect(paint(model, shade, 0, 1000, 100)[62]).toBe(slots[31_234]);
  });

  it("does not paint what is hidden", () => {
    const model = modelOf({ rows: [randomRow(200, 4)] });
    expect(paint(model, new Uint8Array(model.count), 0, 10, 100)).toEqual(new Array(100).fill(-1));
  });

  it("collects labels of slices that are wide enough, with the part in view", () => {
    const model = modelOf({
      rows: [
        [
          { start: 0, duration: 50 },
          { start: 50, duration: 5 },
          { start: 60, duration: 100 },
        ],
      ],
    });
    const labels = new Labels();
    const out = new Uint32Array(100);
    new RowPainter(model, new LevelIndex(model, lit(model)), drawnColours(model), out, 100, 10, 1, labels, 30).paint(
      0,
      0,
    );
    const placed = Array.from({ length: labels.count }, (_, k) => [labels.slice[k], labels.left[k], labels.right[k]]);
    expect(placed).toEqual([
      [0, 0, 40],
      [2, 50, 100],
    ]);
  });

  it("makes room for more labels", () => {
    const labels = new Labels();
    for (let i = 0; i < 5000; i++) labels.add(i, 1, i, i + 1);
    expect([labels.count, labels.slice[4999], labels.right[4999]]).toEqual([5000, 4999, 5000]);
  });
});
