import { describe, expect, it } from "vitest";
import { nextTick, ref, shallowRef } from "vue";
import { useFlameZoom } from "./useFlameZoom";

/** main calls load and train: 3 s and 1 s. */
const TREE = { parent: [-1, 0, 0], own: [0, 3, 1] };

describe("zooming in a flame graph", () => {
  it("shows all boxes first, and as wide as their time", () => {
    const { shown, whole } = useFlameZoom(() => TREE, ref(null));
    expect(shown.value.map((box) => box.node)).toEqual([0, 1, 2]);
    expect(whole.value).toBe(4);
  });

  it("shows one box and what it called, until the tree changes", async () => {
    const tree = shallowRef(TREE);
    const root = ref<number | null>(1);
    const { shown, whole } = useFlameZoom(() => tree.value, root);
    expect(shown.value.map((box) => box.node)).not.toContain(2);
    expect(whole.value).toBe(3);
    tree.value = { ...TREE };
    await nextTick();
    expect(root.value).toBeNull();
    expect(whole.value).toBe(4);
  });
});
