/** What will be needed next is fetched ahead: the trace view's code once the page stands, a timeline when its link is touched. */
import { watch } from "vue";
import type { Router } from "vue-router";
import type { LiveClient } from "./client/live";
import { traceView } from "./router";
import type { SessionStore } from "./state/session";

/** A pointer on the link, the focus on it, a finger: the click is some 100 ms away. */
const TOUCHES = ["pointerover", "focusin", "pointerdown"] as const;

function whenIdle(work: () => void): void {
  if ("requestIdleCallback" in window) requestIdleCallback(work, { timeout: 1_000 });
  else setTimeout(work, 200);
}

/** The number of the trace that a link leads to. */
function traceOf(target: EventTarget | null, router: Router): number | null {
  const link = target instanceof Element ? target.closest<HTMLAnchorElement>("a[href]") : null;
  if (link === null || link.origin !== location.origin) return null;
  const base = new URL(document.baseURI).pathname;
  if (!link.pathname.startsWith(base)) return null;
  const route = router.resolve(`/${link.pathname.slice(base.length)}`);
  return route.name === "trace" ? Number(route.params["id"]) : null;
}

async function prepareView(): Promise<void> {
  await traceView();
  const { warm } = await import("./timeline/warm");
  whenIdle(warm);
}

export function fetchAhead(client: LiveClient, { state }: SessionStore, router: Router): void {
  for (const touch of TOUCHES) {
    document.addEventListener(
      touch,
      (event) => {
        const trace = traceOf(event.target, router);
        if (trace !== null) client.prepare(trace);
      },
      { passive: true },
    );
  }
  router.beforeEach(async (to, from) => {
    if (to.name !== "trace" || to.path === from.path) return;
    const trace = Number(to.params["id"]);
    client.prepare(trace, true);
    await client.almostThere(trace);
  });
  // The first view has what it shows: the connection and the processor are free.
  const stop = watch(state, ({ session }) => {
    if (session === null) return;
    stop();
    whenIdle(() => void prepareView().catch(() => undefined)); // the click tells why it cannot be loaded
  });
}
