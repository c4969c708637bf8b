/** Marks the critical path on the timeline. In a large trace it is costly, so it is requested when it is first highlighted. */
import { onScopeDispose, watch } from "vue";
import type { Client } from "@/client/client";
import { toastError } from "@/state/toasts";
import type { TraceState } from "@/timeline/state";

export function useCriticalPath(client: Client, state: TraceState): void {
  const aborter = new AbortController();
  let requested = false;

  async function mark(): Promise<void> {
    const model = state.model.value;
    if (model === null || requested || model.hasCriticalPath) return;
    requested = true;
    try {
      const path = await client.analysis(state.trace, "critical-path", {}, { signal: aborter.signal });
      model.markCritical(path.steps.map((step) => step.node));
      state.marks.value++;
    } catch (error) {
      requested = false;
      toastError(error);
    }
  }

  watch(
    [state.highlight, state.model],
    ([highlight]) => {
      if (highlight === "critical") void mark();
    },
    { immediate: true },
  );
  onScopeDispose(() => aborter.abort());
}
