/** Whether a media query matches; updated while the component lives. */
import { onScopeDispose, readonly, ref, type Ref } from "vue";

/** In a window this narrow, what is usually beside the timeline is below it. */
export const NARROW = "(width < 720px)";
/** In a window this small, the trace view scrolls, and its parts have fixed heights (workbench.css). */
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
