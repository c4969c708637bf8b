import { describe, expect, it } from "vitest";
import { nextTick, shallowRef } from "vue";
import type { StallStacks } from "@/client/messages";
import { useFlameZoom } from "./useFlameZoom";

/** main calls load and train: 3 s and 1 s. */
const STACKS = {
  parent: [-1, 0, 0],
  frame: [0, 1, 2],
  seconds: [0, 3, 1],
  samples: [0, 3, 1],
  frames: ["main", "load", "train"].map((name) => ({ function: name, file: "a.py", line: 1, kind: "script" })),
} as unknown as StallStacks;

describe("zooming in a flame graph", () => {
  it("shows all boxes first, and as wide as their time", () => {
    const { shown, whole } = useFlameZoom(() => STACKS);
    expect(shown.value.map((box) => box.node)).toEqual([0, 1, 2]);
    expect(whole.value).toBe(4);
  });

  it("shows one box and what it called, until the stacks are others", async () => {
    const stacks = shallowRef(STACKS);
    const { root, shown, whole } = useFlameZoom(() => stacks.value);
    root.value = 1;
    expect(shown.value.map((box) => box.node)).not.toContain(2);
    expect(whole.value).toBe(3);
    stacks.value = { ...STACKS };
    await nextTick();
    expect(root.value).toBeNull();
    expect(whole.value).toBe(4);
  });
});
