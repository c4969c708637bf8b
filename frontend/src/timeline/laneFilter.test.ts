import { describe, expect, it } from "vitest";
import type { Lane } from "@/client/messages";
import { laneFilter } from "./laneFilter";

const lane = (id: number, title: string, group = ""): Lane => ({
  id,
  device: title,
  title,
  kind: "compute",
  group,
  first_row: id,
  rows: 1,
  slices: 1,
  busy_ns: 1,
  collapsed: false,
});
const lanes = [lane(0, "CPU:0"), lane(1, "CPU:0 communication", "rank 1"), lane(2, "GPU:0 stream 14")];
const shown = (text: string): number[] => {
  const { hidden } = laneFilter(lanes, text);
  return lanes.map(({ id }) => id).filter((id) => !hidden.has(id));
};

describe("a pattern over lanes", () => {
  it("shows the lanes whose name or group matches, ignoring case", () => {
    expect(shown("")).toEqual([0, 1, 2]);
    expect(shown("cpu")).toEqual([0, 1]);
    expect(shown("stream \\d+$|^rank 1 ")).toEqual([1, 2]);
  });

  it("hides nothing if it is not valid, and says why", () => {
    for (const wrong of ["(", "(?=a)"]) {
      expect(shown(wrong)).toEqual([0, 1, 2]);
      expect(laneFilter(lanes, wrong).problem).not.toBe("");
    }
    expect(laneFilter(lanes, "TPU")).toEqual({ hidden: new Set([0, 1, 2]), problem: "no lane matches" });
  });
});
