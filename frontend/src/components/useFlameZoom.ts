/** The shown boxes of a flame graph: all of them, or one box and those below it. */
import { computed, watch, type ComputedRef, type Ref } from "vue";
import { boxes, zoomed, type Box, type Tree } from "./flame";

interface FlameZoom {
  readonly shown: ComputedRef<readonly Box[]>;
  /** The size that the graph's whole width stands for. */
  readonly whole: ComputedRef<number>;
}

/** `root`: the node that the graph is zoomed to, or null. It becomes null when the tree changes. */
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
