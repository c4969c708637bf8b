/** A run's slow steps, and the lines of the time between its steps. Both are requested again when the run changes. */
import type { GapProfile, Run, RunStalls } from "@/client/messages";
import { useRepeated, type Repeated } from "@/state/repeated";
import { useSession } from "@/state/session";

const SOON_MS = 1_000;
/** Pause if only the number of steps changed: the usual step time changes slowly. */
const LATER_MS = 15_000;
/** Pause while the time between steps is sampled, which takes 20 seconds. */
const SAMPLING_MS = 2_000;
/** Additional pause for each slow step in the newest answer: a long answer takes the training process tens of milliseconds. */
const PER_STALL_MS = 10;

/** `run` returns undefined until the session is known. */
export function useRunStalls(id: () => number, run: () => Run | undefined): Repeated<RunStalls> {
  const { client, state } = useSession();
  return useRepeated(
    (options) => client.get<RunStalls>(`runs/${id()}/stalls`, options),
    [
      {
        watched: () => `${run()?.slow_steps.count} ${run()?.slow_steps.text} ${run()?.traces.length}`,
        pauseMs: (newest) => SOON_MS + PER_STALL_MS * (newest?.stalls.length ?? 0),
      },
      { watched: () => run()?.steps, pauseMs: LATER_MS },
      { watched: () => state.value.session?.ended_at, pauseMs: SOON_MS },
    ],
  );
}

export function useGaps(run: () => Run | undefined): Repeated<GapProfile> {
  const { client } = useSession();
  return useRepeated(
    (options) => client.get<GapProfile>(`runs/${run()?.id ?? 0}/gaps`, options),
    [
      { watched: () => run()?.slow_steps.gaps_at, pauseMs: SOON_MS },
      { watched: (gaps) => gaps?.state === "sampling" && run()?.steps, pauseMs: SAMPLING_MS },
    ],
  );
}
