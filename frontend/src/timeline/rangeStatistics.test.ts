import { describe, expect, it } from "vitest";
import { Shade } from "./colours";
import { modelOf, random, randomRow } from "../../dev/timeline";
import { Kind } from "./model";
import { busyTime, gaps, rangeStatistics } from "./rangeStatistics";

const all = (n: number): Uint8Array => new Uint8Array(n).fill(Shade.NORMAL);

describe("rangeStatistics", () => {
  const model = modelOf(
    {
      title: "compute",
      rows: [
        [
          { start: 0, duration: 10, op: "A" },
          { start: 20, duration: 10, op: "B" },
        ],
        [{ start: 5, duration: 20, op: "A" }],
      ],
    },
    { title: "again", kind: "repeat", rows: [[{ start: 0, duration: 30, op: "A", kind: Kind.REPEAT }]] },
  );

  it("clips slices that reach over the range's ends and never adds up repeats", () => {
    const statistics = rangeStatistics(model, all(4), 8, 24);
    expect(statistics.count).toBe(3);
    expect(statistics.totalNs).toBe(2 + 4 + 16);
    expect(statistics.byOp).toEqual([
      { key: "A", count: 2, totalNs: 18 },
      { key: "B", count: 1, totalNs: 4 },
    ]);
    expect(statistics.byLane).toEqual([{ lane: 0, key: "compute", count: 3, totalNs: 22, busyNs: 16 }]);
    expect(statistics.repeats).toBe(1);
  });

  it("leaves out what a filter hides", () => {
    const shade = all(4);
    shade[2] = Shade.HIDDEN;
    const statistics = rangeStatistics(model, shade, 0, 30);
    expect([statistics.count, statistics.totalNs, statistics.byLane[0].busyNs]).toEqual([2, 20, 20]);
  });

  it("is empty where nothing ran", () => {
    const statistics = rangeStatistics(model, all(4), 100, 200);
    expect([statistics.count, statistics.totalNs, statistics.byOp.length, statistics.byLane.length]).toEqual([
      0, 0, 0, 0,
    ]);
  });

  it("adds up over adjoining ranges to the whole", () => {
    const busy = modelOf({ rows: [randomRow(800, 2), randomRow(700, 8)] });
    const end = busy.durationNs;
    const cuts = [0, 0.13, 0.4, 0.77, 1].map((share) => share * end);
    const parts = cuts.slice(1).map((cut, i) => rangeStatistics(busy, all(busy.count), cuts[i], cut));
    const whole = rangeStatistics(busy, all(busy.count), 0, end);
    expect(parts.reduce((sum, part) => sum + part.totalNs, 0)).toBeCloseTo(whole.totalNs, 3);
    expect(parts.reduce((sum, part) => sum + part.byLane[0].busyNs, 0)).toBeCloseTo(whole.byLane[0].busyNs, 3);
  });
});

describe("gaps and busy time", () => {
  it("equal a count over every nanosecond", () => {
    const next = random(11);
    for (let round = 0; round < 20; round++) {
      const rows = [1, 2, 3].map((seed) => randomRow(1 + Math.floor(next() * 20), seed + round * 10));
      const model = modelOf({ rows });
      const from = Math.floor(next() * 50);
      const to = from + 1 + Math.floor(next() * 200);
      const covered = new Set<number>();
      for (const s of rows.flat()) for (let t = s.start; t < s.start + s.duration; t++) covered.add(t);
      let expected = 0;
      for (let t = from; t < to; t++) if (covered.has(t)) expected++;
      expect(busyTime(model, null, 0, 3, from, to)).toBe(expected);
      const [starts, ends] = gaps(model, null, 0, 3, from, to);
      for (let i = 0; i < starts.length; i++) {
        for (let t = starts[i]; t < ends[i]; t++) expect(covered.has(t)).toBe(false);
      }
    }
  });
});
