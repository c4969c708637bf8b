/** What a media query says now, followed while the component lives. */
import { onScopeDispose, readonly, ref, type Ref } from "vue";

/** In so narrow a window, what stands beside the timeline comes under it. */
export const NARROW = "(width < 720px)";
/** In so small a one the trace view scrolls, and its parts have heights of their own (workbench.css). */
export const SMALL = "(width < 720px), (height < 560px)";

export function useMedia(query: string): Readonly<Ref<boolean>> {
  const list = matchMedia(query);
  const matches = ref(list.matches);
  const follow = (event: MediaQueryListEvent): void => {
    matches.value = event.matches;
  };
  list.addEventListener("change", follow);
  onScopeDispose(() => list.removeEventListener("change", follow));
  return readonly(matches);
}
