/** Where the page of a file opens: at what it was opened for. */
import type { Router, RouteLocationRaw } from "vue-router";
import type { Client, SessionState } from "@/client/client";

/** The view that says the most of a file: its job, or its only trace; null for a live session and wherever there is a choice. */
export function viewOfFile({ session, job, runs }: SessionState): RouteLocationRaw | null {
  if (session?.live !== false) return null;
  if (job && job.processes.length > 1) return { name: "job" };
  const traces = runs.flatMap((run) => run.traces);
  return traces.length === 1 ? { name: "trace", params: { id: traces[0].id } } : null;
}

/** Leads from the overview to it, once: as soon as the session is known, unless the reader has gone elsewhere. */
export async function openFile(router: Router, client: Client): Promise<void> {
  await router.isReady();
  const first = router.currentRoute.value;
  if (first.name !== "overview" || Object.keys(first.query).length > 0) return;
  const go = (state: SessionState): boolean => {
    if (state.session === null) return false;
    const view = viewOfFile(state);
    if (view !== null && router.currentRoute.value === first) void router.replace(view);
    return true;
  };
  if (go(client.state)) return; // it was quicker than the view's code
  const stop = client.subscribe((state) => {
    if (go(state)) stop();
  });
}
