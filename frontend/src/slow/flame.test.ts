import { describe, expect, it } from "vitest";
import { fakeStacks } from "../../dev/slow";
import { boxes, frameName, framePlace, lineTotals, neighbour, zoomed } from "./flame";

const stacks = fakeStacks();
const all = boxes(stacks);
const named = (node: number): string => frameName(all.find((box) => box.node === node)!.frame);
const nodeOf = (name: string): number => all.find((box) => frameName(box.frame) === name)!.node;

describe("the boxes of a flame graph", () => {
  it("stand under their callers, as wide as the time that was seen in them", () => {
    expect(all.map((box) => [frameName(box.frame), box.depth])).toEqual([
      ["MainThread", 0],
      ["main", 1],
      ["load_batch", 2],
      ["sort", 3],
      ["load_batch", 4],
      ["run", 2],
      ["CheckpointSaverHook.after_run", 3],
      ["reader", 0],
      ["read", 1],
    ]);
    const main = all[1]!;
    expect(main.seconds).toBeCloseTo(0.3);
    expect(main.own).toBe(0);
    expect(main.samples).toBe(60);
    for (const box of all) {
      const inside = all.filter((other) => other.parent === box.node);
      expect(inside.reduce((sum, other) => sum + other.seconds, box.own)).toBeCloseTo(box.seconds);
      for (const other of inside) {
        expect(other.start).toBeGreaterThanOrEqual(box.start - 1e-9);
        expect(other.start + other.seconds).toBeLessThanOrEqual(box.start + box.seconds + 1e-9);
      }
    }
  });

  it("shows one of them over the whole width", () => {
    const inside = zoomed(all, nodeOf("run"));
    expect(inside.map((box) => [frameName(box.frame), box.depth, box.start])).toEqual([
      ["run", 0, 0],
      ["CheckpointSaverHook.after_run", 1, 0],
    ]);
    expect(zoomed(all, null)).toBe(all);
    expect(zoomed(all, 99)).toBe(all);
  });

  it("is walked by arrow keys", () => {
    const main = nodeOf("main");
    expect(named(neighbour(all, main, "ArrowDown"))).toBe("load_batch");
    expect(named(neighbour(all, main, "ArrowUp"))).toBe("MainThread");
    expect(named(neighbour(all, nodeOf("load_batch"), "ArrowRight"))).toBe("run");
    expect(neighbour(all, nodeOf("MainThread"), "ArrowUp")).toBe(nodeOf("MainThread"));
    expect(neighbour(all, nodeOf("reader"), "ArrowRight")).toBe(nodeOf("reader"));
    expect(neighbour(all, 99, "ArrowDown")).toBe(all[0]!.node);
  });

  it("of nothing are none", () => {
    expect(boxes({ frames: [], parent: [], frame: [], seconds: [], samples: [], samples_left_out: 0 })).toEqual([]);
  });
});

describe("the table of lines", () => {
  it("counts a line that calls itself once, and names no threads", () => {
    const lines = lineTotals(stacks);
    const load = lines.find((line) => line.frame.function === "load_batch")!;
    expect(load.own).toBeCloseTo(0.05);
    expect(load.seconds).toBeCloseTo(0.25);
    expect(lines.map((line) => line.frame.function)).not.toContain("MainThread");
    expect(lines[0]!.frame.function).toBe("sort");
  });

  it("names places by their files", () => {
    expect(framePlace({ file: "C:\\work\\train.py", line: 3 })).toBe("train.py:3");
    expect(framePlace({ file: "", line: 0 })).toBe("");
    expect(framePlace({ file: "/a/b.py", line: 0 })).toBe("b.py");
  });
});
