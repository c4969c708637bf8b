/** Which boxes of a flame graph are shown: all of them, or those in the box that was zoomed to. */
import { computed, watch, type ComputedRef, type Ref } from "vue";
import { boxes, zoomed, type Box, type Tree } from "./flame";

interface FlameZoom {
  readonly shown: ComputedRef<readonly Box[]>;
  /** What the graph's width stands for. */
  readonly whole: ComputedRef<number>;
}

/** `root`: the node that was zoomed to; null: none. Another tree begins without one. */
export function useFlameZoom(tree: () => Tree, root: Ref<number | null>): FlameZoom {
  const all = computed(() => boxes(tree()));
  const shown = computed(() => zoomed(all.value, root.value));
  const whole = computed(() =>
    root.value === null
      ? all.value.filter((box) => box.depth === 0).reduce((sum, box) => sum + box.size, 0)
      : (shown.value[0]?.size ?? 0),
  );
  watch(tree, () => (root.value = null));
  return { shown, whole };
}
