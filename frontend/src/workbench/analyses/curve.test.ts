import { describe, expect, it } from "vitest";
import type { MemoryCurve, Tensor } from "@/client/messages";
import { aliveAt, bytesAt, stepPath } from "./curve";

const curve: MemoryCurve = {
  allocator: "cpu",
  device: "CPU:0",
  time_ns: [0, 100, 300],
  bytes: [10, 40, 20],
  peak_bytes: 40,
  peak_ns: 100,
};

function tensor(node: number, bytes: number, from: number, until: number): Tensor {
  const rest = {
    output: 0,
    op: "Mul",
    device: "CPU:0",
    allocator: "cpu",
    shape: "[1]",
    dtype: "float32",
    last_consumer: -1,
  };
  return { ...rest, node, name: `n${node}`, bytes, alloc_ns: from, free_ns: until };
}

describe("the memory curve", () => {
  it("keeps its level until the next point", () => {
    expect([-1, 0, 99, 100, 299, 300, 1e9].map((ns) => bytesAt(curve, ns))).toEqual([0, 10, 10, 40, 40, 20, 20]);
  });
  it("is drawn as steps from its first point to the right edge", () => {
    expect(stepPath(curve, 400, 40)).toBe("M0.00,150.00H250.00V0.00H750.00V100.00H1000");
  });
  it("is empty for an empty trace", () => {
    expect(stepPath({ ...curve, time_ns: [], bytes: [] }, 400, 40)).toBe("");
  });
});

describe("what was alive", () => {
  it("includes the start, leaves out the end, and lists the largest first", () => {
    const tensors = [tensor(1, 5, 0, 10), tensor(2, 9, 5, 20), tensor(3, 7, 10, 30)];
    expect(aliveAt(tensors, 5).map((t) => t.node)).toEqual([2, 1]);
    expect(aliveAt(tensors, 10).map((t) => t.node)).toEqual([2, 3]);
    expect(aliveAt(tensors, 30)).toEqual([]);
  });
});
