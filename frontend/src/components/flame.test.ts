import { describe, expect, it } from "vitest";
import { boxes, neighbour, rests, zoomed } from "./flame";

/** main calls load (which sorts and calls itself) and run; another thread reads. */
const NAMES = ["MainThread", "main", "run", "after_run", "load", "sort", "load again", "reader", "read"];
const tree = { parent: [-1, 0, 1, 2, 1, 4, 4, -1, 7], own: [0, 0, 0, 0.05, 0.05, 0.15, 0.05, 0, 0.1] };
const all = boxes(tree);
const named = (node: number): string => NAMES[node]!;
const nodeOf = (name: string): number => NAMES.indexOf(name);

describe("the boxes of a flame graph", () => {
  it("are joined if too narrow to draw, but not inside a box that is too narrow itself", () => {
    expect(rests(all, 0)).toEqual([]);
    const flat = boxes({ parent: [-1, -1, -1, -1, 3], own: [5, 1, 1, 0, 1] });
    expect(rests(flat, 2)).toEqual([{ depth: 0, start: 5, size: 3, boxes: 3 }]);
    expect(rests(flat, 4)).toEqual([]);
  });

  it("are below their parent, the largest first, as wide as their own time and their children's", () => {
    expect(all.map((box) => [named(box.node), box.depth])).toEqual([
      ["MainThread", 0],
      ["main", 1],
      ["load", 2],
      ["sort", 3],
      ["load again", 3],
      ["run", 2],
      ["after_run", 3],
      ["reader", 0],
      ["read", 1],
    ]);
    const main = all[1]!;
    expect(main.size).toBeCloseTo(0.3);
    expect(main.own).toBe(0);
    for (const box of all) {
      const inside = all.filter((other) => other.parent === box.node);
      expect(inside.reduce((sum, other) => sum + other.size, box.own)).toBeCloseTo(box.size);
      for (const other of inside) {
        expect(other.start).toBeGreaterThanOrEqual(box.start - 1e-9);
        expect(other.start + other.size).toBeLessThanOrEqual(box.start + box.size + 1e-9);
      }
    }
  });

  it("can be zoomed to one of them", () => {
    const inside = zoomed(all, nodeOf("run"));
    expect(inside.map((box) => [named(box.node), box.depth, box.start])).toEqual([
      ["run", 0, 0],
      ["after_run", 1, 0],
    ]);
    expect(zoomed(all, null)).toBe(all);
    expect(zoomed(all, 99)).toBe(all);
  });

  it("are walked by arrow keys", () => {
    const main = nodeOf("main");
    expect(named(neighbour(all, main, "ArrowDown"))).toBe("load");
    expect(named(neighbour(all, main, "ArrowUp"))).toBe("MainThread");
    expect(named(neighbour(all, nodeOf("load"), "ArrowRight"))).toBe("run");
    expect(neighbour(all, nodeOf("MainThread"), "ArrowUp")).toBe(nodeOf("MainThread"));
    expect(neighbour(all, nodeOf("reader"), "ArrowRight")).toBe(nodeOf("reader"));
    expect(neighbour(all, 99, "ArrowDown")).toBe(all[0]!.node);
  });

  it("are none for an empty tree", () => {
    expect(boxes({ parent: [], own: [] })).toEqual([]);
  });
});
