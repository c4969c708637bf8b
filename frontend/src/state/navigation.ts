/** Navigations whose view could not be loaded. Without a message the page would stay unchanged or blank. */
import { onScopeDispose, shallowRef, type ShallowRef } from "vue";
import { useRouter } from "vue-router";

/** Return the address of the view that could not be loaded; null after a navigation that succeeded. */
export function useFailedNavigation(): Readonly<ShallowRef<string | null>> {
  const router = useRouter();
  const failedAddress = shallowRef<string | null>(null);
  const removeHooks = [
    router.onError((_error, to) => {
      failedAddress.value = router.resolve(to).href;
    }),
    router.afterEach((_to, _from, failure) => {
      if (!failure) failedAddress.value = null;
    }),
  ];
  onScopeDispose(() => removeHooks.forEach((remove) => remove()));
  return failedAddress;
}
