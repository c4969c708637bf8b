/** Chooses the view that the page of a file shows first. */
import type { Router, RouteLocationRaw } from "vue-router";
import type { Client, SessionState } from "@/client/client";

/** Return the view for a file: its job, or its only trace. Null for a live session, and for any other number of traces. */
export function viewOfFile({ session, job, runs }: SessionState): RouteLocationRaw | null {
  if (session?.live !== false) return null;
  if (job && job.processes.length > 1) return { name: "job" };
  const traces = runs.flatMap((run) => run.traces);
  return traces.length === 1 ? { name: "trace", params: { id: traces[0].id } } : null;
}

/** Go from the overview to the file's view, once the session is known, unless the user has gone to another view. */
export async function openFile(router: Router, client: Client): Promise<void> {
  await router.isReady();
  const initialRoute = router.currentRoute.value;
  if (initialRoute.name !== "overview" || Object.keys(initialRoute.query).length > 0) return;
  const openOnceKnown = (state: SessionState): boolean => {
    if (state.session === null) return false;
    const view = viewOfFile(state);
    if (view !== null && router.currentRoute.value === initialRoute) void router.replace(view);
    return true;
  };
  if (openOnceKnown(client.state)) return; // the session was known before the view's code was loaded
  const stop = client.subscribe((state) => {
    if (openOnceKnown(state)) stop();
  });
}
