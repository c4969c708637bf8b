import { describe, expect, it } from "vitest";
import { modelOf } from "../../dev/timeline";
import { bandOfRow, fullHeight, Layout, NO_CHOICES, orderOf, rowAt, topOfRow, type LaneChoices } from "./layout";

const row = [{ start: 0, duration: 1 }];
const { lanes } = modelOf({ rows: [row, row] }, { rows: [row], collapsed: true }, { rows: [row, row, row] });
const choose = (choices: Partial<LaneChoices>): LaneChoices => ({ ...NO_CHOICES, ...choices });

describe("lanes", () => {
  it("are in the server's order by default; pinned ones come first", () => {
    expect(orderOf(lanes, NO_CHOICES)).toEqual([0, 1, 2]);
    expect(orderOf(lanes, choose({ order: [2, 0, 1] }))).toEqual([2, 0, 1]);
    expect(orderOf(lanes, choose({ order: [2] }))).toEqual([2, 0, 1]);
    expect(orderOf(lanes, choose({ pinned: [1], order: [2, 0, 1] }))).toEqual([1, 2, 0]);
  });

  it("fill no more than their full height, however tall the window", () => {
    expect(new Layout(lanes, NO_CHOICES, false, 1e6).height).toBe(fullHeight(lanes));
    expect(new Layout(lanes, NO_CHOICES, false, 100).height).toBeLessThan(fullHeight(lanes));
    expect(fullHeight([])).toBe(0);
  });

  it("do not overlap, and each row is found where it is drawn", () => {
    for (const strip of [false, true]) {
      const { bands, height } = new Layout(lanes, NO_CHOICES, strip);
      bands.slice(1).forEach((band, i) => expect(band.top).toBe(bands[i].top + bands[i].height));
      expect(height).toBe(bands[2].top + bands[2].height);
      for (const band of bands.filter((b) => !b.collapsed)) {
        for (let r = band.lane.first_row; r < band.lane.first_row + band.lane.rows; r++) {
          expect(rowAt(bands, topOfRow(bands, r) + band.rowHeight / 2)).toBe(r);
          expect(bandOfRow(bands, r)).toBe(band);
        }
      }
    }
  });

  it("fold and unfold", () => {
    const folded = (toggled: number[]): boolean[] =>
      new Layout(lanes, choose({ toggled: new Set(toggled) }), false).bands.map((b) => b.collapsed);
    expect(folded([])).toEqual([false, true, false]);
    expect(folded([0, 1])).toEqual([true, false, false]);
  });

  it("are left out when a filter hides them", () => {
    const { bands } = new Layout(lanes, choose({ hidden: new Set([0]) }), false);
    expect(bands.map((b) => b.lane.id)).toEqual([1, 2]);
    expect(topOfRow(bands, 0)).toBeNaN();
    expect(rowAt(bands, 1e6)).toBe(-1);
  });

  it("stay at the top when pinned, unless that would leave no room", () => {
    const layout = new Layout(lanes, choose({ pinned: [0] }), false);
    const [pinned, next] = layout.bands;
    expect(layout.screenTop(pinned, 30, 500)).toBe(0);
    expect(layout.screenTop(next, 30, 500)).toBe(next.top - 30);
    expect(layout.contentY(5, 30, 500)).toBe(5);
    expect(layout.contentY(200, 30, 500)).toBe(230);
    expect(layout.stickyHeight(20)).toBe(0);
  });

  it("grow into a tall window, within reason", () => {
    const natural = new Layout(lanes, NO_CHOICES, false, 100).bands[2].rowHeight;
    const grown = new Layout(lanes, NO_CHOICES, false, 2000).bands[2].rowHeight;
    expect(grown).toBeGreaterThan(natural);
    expect(grown).toBeLessThanOrEqual(32);
  });
});
