/** Which boxes of a flame graph are shown: all of them, or those below the box that was zoomed to. */
import { computed, ref, watch, type ComputedRef, type Ref } from "vue";
import type { StallStacks } from "@/client/messages";
import { boxes, zoomed, type Box } from "./flame";

interface FlameZoom {
  /** The node that was zoomed to; null: none. Other stacks begin without one. */
  readonly root: Ref<number | null>;
  readonly shown: ComputedRef<readonly Box[]>;
  /** Seconds that the graph's width stands for. */
  readonly whole: ComputedRef<number>;
}

export function useFlameZoom(stacks: () => StallStacks): FlameZoom {
  const root = ref<number | null>(null);
  const all = computed(() => boxes(stacks()));
  const shown = computed(() => zoomed(all.value, root.value));
  const whole = computed(() =>
    root.value === null
      ? all.value.filter((box) => box.depth === 0).reduce((sum, box) => sum + box.seconds, 0)
      : (shown.value[0]?.seconds ?? 0),
  );
  watch(stacks, () => (root.value = null));
  return { root, shown, whole };
}
