/** A run's step times. While `steps` grows they are requested again every few seconds, but not while the tab is hidden. */
import { computed, type ComputedRef, type Ref } from "vue";
import { useRepeated } from "@/state/repeated";
import { useSession } from "@/state/session";
import { timesOf, type Times } from "./times";

const AGAIN_MS = 3_000;

export function useTimes(
  run: () => number,
  steps: () => number,
): { times: ComputedRef<Times | null>; error: Ref<string> } {
  const { client } = useSession();
  const { data, error } = useRepeated(
    (options) => client.steps(run(), options),
    [{ watched: steps, pauseMs: AGAIN_MS }],
  );
  return { times: computed(() => data.value && timesOf(data.value)), error };
}
