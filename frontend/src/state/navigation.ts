/** Navigations whose view could not be loaded. Without a message the page would stay as it was, or blank. */
import { onScopeDispose, shallowRef, type ShallowRef } from "vue";
import { useRouter } from "vue-router";

/** Return the address of the view that could not be loaded; null after a navigation that succeeded. */
export function useFailedNavigation(): Readonly<ShallowRef<string | null>> {
  const router = useRouter();
  const failed = shallowRef<string | null>(null);
  const ends = [
    router.onError((_error, to) => {
      failed.value = router.resolve(to).href;
    }),
    router.afterEach((_to, _from, failure) => {
      if (!failure) failed.value = null;
    }),
  ];
  onScopeDispose(() => ends.forEach((end) => end()));
  return failed;
}
