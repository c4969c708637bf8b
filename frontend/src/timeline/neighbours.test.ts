import { describe, expect, it } from "vitest";
import { Shade } from "./colours";
import { modelOf } from "../../dev/timeline";
import { Layout, NO_CHOICES } from "./layout";
import { acrossRows, alongRow, firstInView } from "./neighbours";

const model = modelOf(
  { rows: [[0, 10, 20, 30].map((start) => ({ start, duration: 5 }))] },
  {
    rows: [
      [
        { start: 12, duration: 2 },
        { start: 100, duration: 5 },
      ],
      [],
    ],
  },
);
const layout = new Layout(model.lanes, NO_CHOICES, false);
const shade = (): Uint8Array => new Uint8Array(model.count).fill(Shade.NORMAL);

describe("moving the selection", () => {
  it("goes along a row, past hidden slices, to its ends", () => {
    const some = shade();
    some[1] = Shade.HIDDEN;
    expect(alongRow(model, shade(), 0, 1)).toBe(1);
    expect(alongRow(model, some, 0, 1)).toBe(2);
    expect(alongRow(model, some, 0, -1)).toBe(-1);
    expect(alongRow(model, shade(), 3, 1)).toBe(-1);
  });

  it("goes to the slice nearest in time on the next row that has any", () => {
    expect(acrossRows(model, shade(), layout, 1, 1)).toBe(4);
    expect(acrossRows(model, shade(), layout, 5, -1)).toBe(3);
    expect(acrossRows(model, shade(), layout, 4, 1)).toBe(-1);
    const some = shade();
    some[4] = Shade.HIDDEN;
    expect(acrossRows(model, some, layout, 1, 1)).toBe(5);
  });

  it("begins with the first slice in view", () => {
    expect(firstInView(model, shade(), layout, 15)).toBe(2);
    expect(firstInView(model, shade(), layout, 50)).toBe(5);
    expect(firstInView(model, shade(), layout, 500)).toBe(-1);
  });
});
