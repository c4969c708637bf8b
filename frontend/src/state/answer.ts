/** One answer of the server for a view: loading, failed or ready. It is requested again when its key changes. */
import { onScopeDispose, shallowRef, watch, type ShallowRef } from "vue";
import { ClientError, type RequestOptions } from "@/client/client";

export interface Answer<T> {
  readonly data: Readonly<ShallowRef<T | null>>;
  readonly error: Readonly<ShallowRef<string>>;
  readonly loading: Readonly<ShallowRef<boolean>>;
  /** Whether the request failed with a 404, so that asking again does not help. */
  readonly missing: Readonly<ShallowRef<boolean>>;
  retry: () => void;
}

function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** `request` runs at once and whenever `key` changes. A request that is no longer needed is cancelled. */
export function useAnswer<T>(key: () => unknown, request: (options: RequestOptions) => Promise<T>): Answer<T> {
  const data = shallowRef<T | null>(null);
  const error = shallowRef("");
  const loading = shallowRef(false);
  const missing = shallowRef(false);
  let current: AbortController | null = null;

  async function load(): Promise<void> {
    current?.abort();
    const mine = new AbortController();
    current = mine;
    loading.value = true;
    error.value = "";
    try {
      const answer = await request({ signal: mine.signal });
      if (current === mine) data.value = answer;
    } catch (failure) {
      if (current === mine && !isAbort(failure)) {
        data.value = null;
        error.value = failure instanceof Error ? failure.message : String(failure);
        missing.value = failure instanceof ClientError && failure.status === 404;
      }
    } finally {
      if (current === mine) loading.value = false;
    }
  }

  watch(key, () => void load(), { immediate: true });
  onScopeDispose(() => current?.abort());
  return { data, error, loading, missing, retry: () => void load() };
}
