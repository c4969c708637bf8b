import { describe, expect, it, vi } from "vitest";
import { ref } from "vue";
import type { TraceState } from "@/timeline/state";
import type { Tab } from "./analyses";
import { follow, leadsTo } from "./evidence";

function fakeState(): TraceState {
  return {
    node: { value: null },
    row: { value: null },
    model: {
      value: {
        lanes: [
          { device: "CPU:0", first_row: 0 },
          { device: "GPU:0", first_row: 7 },
        ],
      },
    },
    select: vi.fn(),
    mark: vi.fn(),
    find: vi.fn(),
  } as unknown as TraceState;
}

const tab = ref<Tab>("timeline");

describe("evidence of a sentence", () => {
  it("says where it leads", () => {
    expect(leadsTo({ nodes: [3] })).toMatch(/op/);
    expect(leadsTo({ nodes: [], start_ns: 1e6, end_ns: 2e6 })).toMatch(/1\.00.ms to 2\.00.ms/);
    expect(leadsTo({ nodes: [], tab: "critical-path" })).toBe("Open critical path");
    expect(leadsTo({ nodes: [] })).toBe("");
    expect(leadsTo({ nodes: [], start_ns: 0, end_ns: 0 })).toBe("");
  });

  it("is shown: the op, the range, the search, the tab", () => {
    const state = fakeState();
    follow(state, tab, { nodes: [3, 4], tab: "ops", op: "MatMul" });
    expect(state.select).toHaveBeenCalledWith(3);
    expect(tab.value).toBe("ops");
    expect(state.find).toHaveBeenCalledWith("MatMul");
    expect(state.mark).not.toHaveBeenCalled();
  });

  it("shows the range and keeps it in view when it has both a range and ops", () => {
    const state = fakeState();
    follow(state, tab, { nodes: [3], start_ns: 10, end_ns: 20 });
    expect(state.node.value).toBe(3);
    expect(state.mark).toHaveBeenCalledWith(10, 20);
    expect(state.select).not.toHaveBeenCalled();
  });

  it("scrolls to its lane if it has no op, and marks no range without length", () => {
    const state = fakeState();
    follow(state, tab, { nodes: [], lane: "GPU:0", tab: "budget", start_ns: 0, end_ns: 0 });
    expect(state.row.value).toBe(7);
    expect(state.mark).not.toHaveBeenCalled();
  });
});
