/** A run's step times, asked for again while the run goes on: at most every few seconds, and never in a hidden tab. */
import { onBeforeUnmount, ref, shallowRef, watch, type Ref, type ShallowRef } from "vue";
import { useSession } from "@/state/session";
import { timesOf, type Times } from "./times";

const AGAIN_MS = 3_000;

export function useTimes(
  run: () => number,
  steps: () => number,
): { times: ShallowRef<Times | null>; error: Ref<string> } {
  const { client } = useSession();
  const times = shallowRef<Times | null>(null);
  const error = ref("");
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | null = null;

  async function ask(): Promise<void> {
    timer = null;
    try {
      times.value = timesOf(await client.steps(run(), { signal: abort.signal }));
      error.value = "";
    } catch (problem) {
      if (!abort.signal.aborted) error.value = problem instanceof Error ? problem.message : String(problem);
    }
  }

  function soon(): void {
    if (!document.hidden) timer ??= setTimeout(() => void ask(), AGAIN_MS);
  }

  watch(steps, soon);
  document.addEventListener("visibilitychange", soon);
  onBeforeUnmount(() => {
    abort.abort();
    if (timer) clearTimeout(timer);
    document.removeEventListener("visibilitychange", soon);
  });
  void ask();
  return { times, error };
}
