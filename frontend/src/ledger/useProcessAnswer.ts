/**
 * An answer about the whole process. It is requested again when the runs change, and at intervals while a live script has no
 * runs. After the script's end it is requested soon after each message, because the last figures arrive late.
 */
import type { ShallowRef } from "vue";
import { useRepeated } from "@/state/repeated";
import { useSession } from "@/state/session";

const SOON_MS = 500;

export function useProcessAnswer<T>(path: string, pauseMs: number): ShallowRef<T | null> {
  const { client, state } = useSession();
  const waitsForRuns = (): boolean => {
    const { session, runs } = state.value;
    return !runs.length && session !== null && session.live && session.ended_at === null;
  };
  const hasEnded = (): boolean => {
    const { session } = state.value;
    return session !== null && session.live && session.ended_at !== null;
  };
  const { data } = useRepeated(
    (options) => client.get<T>(path, options),
    [
      { watched: () => state.value.runs, pauseMs },
      { watched: (newest) => (waitsForRuns() ? newest : null), pauseMs },
      { watched: () => hasEnded() && state.value.session, pauseMs: SOON_MS },
      { watched: () => hasEnded() && state.value.runs, pauseMs: SOON_MS },
    ],
  );
  return data;
}
