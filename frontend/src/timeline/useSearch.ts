/** Runs the search that is in the URL. A newer search cancels an older one that still runs. */
import { onScopeDispose, watch } from "vue";
import { nextMatch, parseQuery, search } from "./search";
import type { TraceState } from "./state";

export function useSearch(state: TraceState): { selectMatch: (forward: boolean) => void } {
  let aborter = new AbortController();

  async function run(): Promise<void> {
    aborter.abort();
    aborter = new AbortController();
    const { signal } = aborter;
    const model = state.model.value;
    const query = parseQuery(state.search.value, state.regex.value);
    if (query.kind === "invalid") state.searchResult.value = { status: "invalid", message: query.message };
    else if (model === null || query.kind === "empty") state.searchResult.value = { status: "empty" };
    else {
      if (state.searchResult.value.status !== "ready") state.searchResult.value = { status: "busy" };
      try {
        const matches = await search(model, query.test, signal);
        if (!signal.aborted) state.searchResult.value = { status: "ready", matches };
      } catch (error) {
        if (!signal.aborted) state.searchResult.value = { status: "invalid", message: String(error) };
      }
    }
  }

  function selectMatch(forward: boolean): void {
    const model = state.model.value;
    const search = state.searchResult.value;
    if (model === null || search.status !== "ready") return;
    const from = state.node.value === null ? -1 : model.sliceOf(state.node.value);
    const slice = nextMatch(model, search.matches, from, forward);
    if (slice >= 0) state.select(model.node[slice]);
  }

  watch([state.model, state.search, state.regex], () => void run(), { immediate: true });
  onScopeDispose(() => aborter.abort());
  return { selectMatch };
}
