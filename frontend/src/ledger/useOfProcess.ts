/** An answer on the whole process, asked for again while its runs change; while a script runs that has none, all the time. */
import type { ShallowRef } from "vue";
import { useRepeated } from "@/state/repeated";
import { useSession } from "@/state/session";

export function useOfProcess<T>(path: string, pauseMs: number): ShallowRef<T | null> {
  const { client, state } = useSession();
  const runsWithoutSteps = (): boolean => {
    const { session, runs } = state.value;
    return !runs.length && session !== null && session.live && session.ended_at === null;
  };
  const { data } = useRepeated(
    (ask) => client.ask<T>(path, ask),
    [
      { of: () => state.value.runs, pauseMs },
      { of: (newest) => (runsWithoutSteps() ? newest : null), pauseMs },
    ],
  );
  return data;
}
