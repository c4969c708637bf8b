/** Observes an element's width. Does nothing without a ResizeObserver (in the tests). */
import { onBeforeUnmount, onMounted, type ShallowRef } from "vue";

/** Call `resized` with the width of the element's content, in CSS pixels: right after the mount, then after each change. */
export function useResize(element: Readonly<ShallowRef<HTMLElement | null>>, resized: (width: number) => void): void {
  const observer =
    typeof ResizeObserver === "function"
      ? new ResizeObserver(([entry]) => {
          if (entry) resized(entry.contentRect.width);
        })
      : null;
  onMounted(() => {
    if (element.value) observer?.observe(element.value);
  });
  onBeforeUnmount(() => observer?.disconnect());
}
