/** What a media query says now, followed while the component lives. */
import { onScopeDispose, readonly, ref, type Ref } from "vue";

/** Where less than this is wide, what stands beside the timeline comes under it. */
export const NARROW = "(width < 720px)";

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
