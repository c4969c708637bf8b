import { describe, expect, it } from "vitest";
import { fakeStacks } from "../../dev/slow";
import { framePlace, lineTotals, sampleCounts } from "./stacks";

const stacks = fakeStacks();

describe("the samples of stacks", () => {
  it("of a call are its own and those of what it called", () => {
    const counts = sampleCounts(stacks);
    const all = stacks.samples.reduce((sum, own) => sum + own, 0);
    const outermost = counts.filter((_, node) => stacks.parent[node] === -1);
    expect(outermost.reduce((sum, count) => sum + count, 0)).toBe(all);
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
