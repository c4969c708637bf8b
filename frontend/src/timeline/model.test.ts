import { describe, expect, it } from "vitest";
import { messageOf, modelOf, randomRow } from "../../dev/timeline";
import { StringTable, TimelineModel } from "./model";

describe("TimelineModel", () => {
  const model = modelOf(
    {
      rows: [
        [
          { start: 0, duration: 10, name: "a", op: "A" },
          { start: 20, duration: 5, name: "b", op: "B" },
        ],
        [{ start: 3, duration: 4, name: "c", op: "A" }],
      ],
    },
    { rows: [[{ start: 1, duration: 1, name: "d", op: "D" }]], title: "second" },
  );

  it("finds a slice's row, lane, name and op", () => {
    expect([0, 1, 2, 3].map((i) => model.rowOf(i))).toEqual([0, 0, 1, 2]);
    expect(model.laneOf(3)?.title).toBe("second");
    expect(model.nameOf(2)).toBe("c");
    expect(model.opOf(2)).toBe("A");
    expect(model.end(1)).toBe(25);
  });

  it("finds the slice of a node, and none for a node that is not drawn", () => {
    expect(model.sliceOf(2)).toBe(2);
    expect(model.sliceOf(99)).toBe(-1);
    expect(model.sliceOf(-1)).toBe(-1);
  });

  it("searches rows as a linear search does", () => {
    const row = randomRow(500, 3);
    const one = modelOf({ rows: [row] });
    for (let t = -5; t < one.durationNs + 5; t += 13) {
      const ending = row.findIndex((s) => s.start + s.duration > t);
      const starting = row.findIndex((s) => s.start >= t);
      expect(one.firstEndingAfter(0, t)).toBe(ending < 0 ? row.length : ending);
      expect(one.firstStartingAt(0, t)).toBe(starting < 0 ? row.length : starting);
    }
  });

  it("reads columns that are not aligned in the message", () => {
    const message = messageOf([{ rows: [[{ start: 7, duration: 2 }]] }]);
    const shifted = new Uint8Array(message.start.data.length + 3);
    shifted.set(message.start.data, 3);
    message.start = { dtype: "f8", data: shifted.subarray(3) };
    expect(new TimelineModel(message).start[0]).toBe(7);
  });

  it("accepts an empty trace", () => {
    const empty = modelOf();
    expect([empty.count, empty.rows, empty.durationNs]).toEqual([0, 0, 1]);
  });
});

describe("StringTable", () => {
  function table(texts: string[]): StringTable {
    return new StringTable(messageOf([{ rows: [texts.map((name, i) => ({ start: i, duration: 1, name }))] }]).names);
  }

  it("returns strings, ASCII or not", () => {
    for (const texts of [
      ["a", "layer/MatMul", ""],
      ["größe", "漢字/op", "a", "😀"],
    ]) {
      const strings = table(texts);
      expect(texts.map((_, i) => strings.get(i))).toEqual(texts);
    }
  });

  it("returns an empty string for an index outside", () => {
    expect(table(["a"]).get(5)).toBe("");
  });
});
