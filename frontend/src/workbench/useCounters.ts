/** Loads the counters of the trace after the verdict, so that the verdict does not wait for them. */
import { markRaw, watch } from "vue";
import type { Client } from "@/client/client";
import { useAnswer } from "@/state/answer";
import { counterSet } from "@/timeline/counters";
import type { TraceState } from "@/timeline/state";

export function useCounters(client: Client, state: TraceState, wanted: () => boolean): void {
  const answer = useAnswer(wanted, (options) =>
    wanted() ? client.analysis(state.trace, "counters", {}, options) : Promise.resolve(null),
  );
  watch([answer.data, answer.error, state.model], ([message, failure, model]) => {
    if (model === null) return;
    if (message !== null) state.counters.value = markRaw(counterSet(message, model.durationNs));
    else if (failure) state.counters.value = { series: [], missing: [{ title: "Counters", reason: failure }] };
  });
}
