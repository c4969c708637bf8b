import { describe, expect, it } from "vitest";
import type { Neighbourhood } from "@/client/messages";
import { BOX, draw, layersOf } from "./graphLayout";

const node = (i: number): Neighbourhood["nodes"][number] => ({ node: i, name: `n${i}`, op: "Mul", device: "CPU:0" });
const graph: Neighbourhood = {
  nodes: [0, 1, 2, 3, 4].map(node),
  edges: [
    [0, 2],
    [1, 2],
    [2, 3],
    [3, 4],
  ],
  left_out: 0,
};

describe("the graph around an op", () => {
  it("puts inputs before it and consumers after it", () => {
    expect(layersOf(graph, 2)).toEqual([-1, -1, 0, 1, 2]);
  });
  it("ends on a cycle", () => {
    const cycle = { ...graph, edges: [...graph.edges, [4, 0]] };
    expect(layersOf(cycle, 2)).toHaveLength(5);
  });
  it("draws no two boxes over each other and every edge once", () => {
    const drawn = draw(graph, 2);
    expect(drawn.edges).toHaveLength(4);
    const places = drawn.boxes.map((box) => `${box.x},${box.y}`);
    expect(new Set(places).size).toBe(5);
    expect(drawn.width).toBe(3 * (BOX.width + BOX.gapX) + BOX.width);
    for (const [from, to] of drawn.edges) expect(from.x).toBeLessThan(to.x);
  });
});
