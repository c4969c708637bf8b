/** An answer that is requested again when something that it depends on changes. A hidden tab schedules no request. */
import { onBeforeUnmount, ref, shallowRef, watch, type Ref, type ShallowRef } from "vue";
import type { RequestOptions } from "@/client/client";

export interface Repeated<T> {
  /** The newest answer. It stays after an error. */
  readonly data: ShallowRef<T | null>;
  readonly error: Ref<string>;
  /** Request the answer now. */
  readonly again: () => void;
}

/** When the result of `watched` changes, the answer is requested again within `pauseMs`. */
export interface Trigger<T> {
  readonly watched: (newest: T | null) => unknown;
  readonly pauseMs: number | ((newest: T | null) => number);
}

export function useRepeated<T>(
  request: (options: RequestOptions) => Promise<T>,
  triggers: readonly Trigger<T>[],
): Repeated<T> {
  const data = shallowRef<T | null>(null);
  const error = ref("");
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | null = null;
  let due = Infinity;

  async function again(): Promise<void> {
    stop();
    try {
      data.value = await request({ signal: abort.signal });
      error.value = "";
    } catch (problem) {
      if (!abort.signal.aborted) error.value = problem instanceof Error ? problem.message : String(problem);
    }
  }

  function stop(): void {
    if (timer) clearTimeout(timer);
    timer = null;
    due = Infinity;
  }

  function requestWithin(pauseMs: number): void {
    const at = performance.now() + pauseMs;
    if (document.hidden || at >= due) return;
    stop();
    due = at;
    timer = setTimeout(() => void again(), pauseMs);
  }

  function pauseAfter({ pauseMs }: Trigger<T>): number {
    return typeof pauseMs === "number" ? pauseMs : pauseMs(data.value);
  }

  for (const trigger of triggers)
    watch(
      () => trigger.watched(data.value),
      () => requestWithin(pauseAfter(trigger)),
    );
  const onVisibility = (): void => requestWithin(Math.max(...triggers.map(pauseAfter)));
  document.addEventListener("visibilitychange", onVisibility);
  onBeforeUnmount(() => {
    abort.abort();
    stop();
    document.removeEventListener("visibilitychange", onVisibility);
  });
  void again();
  return { data, error, again: () => void again() };
}
