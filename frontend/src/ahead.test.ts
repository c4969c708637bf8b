import { createMemoryHistory, createRouter, type Router } from "vue-router";
import { shallowRef, type ShallowRef } from "vue";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { fakeSession } from "../dev/fake";
import { fetchAhead } from "./ahead";
import type { LiveClient } from "./client/live";
import { emptyState, type LiveState } from "./client/reduce";
import type { SessionStore } from "./state/session";

const loaded = vi.hoisted(() => ({ view: vi.fn(() => Promise.resolve({})), warm: vi.fn() }));
vi.mock("./router", () => ({ traceView: loaded.view }));
vi.mock("./timeline/warm", () => ({ warm: loaded.warm }));

const nothing = { render: () => null };

/** A page with fetching ahead: what it asks for, its router, and the session that it sees. */
function start(almostThere = (): Promise<void> => Promise.resolve()): {
  prepare: ReturnType<typeof vi.fn>;
  router: Router;
  state: ShallowRef<LiveState>;
} {
  const prepare = vi.fn();
  const state = shallowRef<LiveState>(emptyState);
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: "/", component: nothing },
      { path: "/runs/:id(\\d+)", name: "run", component: nothing },
      { path: "/traces/:id(\\d+)", name: "trace", component: nothing },
    ],
  });
  fetchAhead({ prepare, almostThere } as unknown as LiveClient, { state } as unknown as SessionStore, router);
  return { prepare, router, state };
}

function link(href: string): HTMLElement {
  document.body.innerHTML = `<a href="${href}"><b>a link</b></a>`;
  return document.querySelector("b")!;
}

beforeEach(() => {
  vi.clearAllMocks();
  vi.stubGlobal("requestIdleCallback", (work: () => void) => work());
});

describe("what is asked for ahead", () => {
  it.each(["pointerover", "focusin", "pointerdown"])("is the timeline whose link is touched: %s", (touch) => {
    const { prepare } = start();
    link("/traces/7").dispatchEvent(new Event(touch, { bubbles: true }));
    expect(prepare.mock.calls).toEqual([[7]]);
  });

  it.each(["/runs/7", "https://elsewhere.example/traces/7", "#main"])("is nothing at %s", (href) => {
    const { prepare } = start();
    link(href).dispatchEvent(new Event("pointerover", { bubbles: true }));
    document.body.dispatchEvent(new Event("pointerover", { bubbles: true }));
    expect(prepare).not.toHaveBeenCalled();
  });

  it("is, whatever its size, the timeline that is being opened: once, not at each change of its query", async () => {
    const { prepare, router } = start();
    await router.push("/traces/7");
    await router.push("/traces/7?node=3");
    await router.push("/runs/1");
    expect(prepare.mock.calls).toEqual([[7, true]]);
  });

  it("is waited for by the view, if it is almost there", async () => {
    const waiting: (() => void)[] = [];
    const { router } = start(() => new Promise((resolve) => waiting.push(resolve)));
    const opened = router.push("/traces/7");
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    expect(router.currentRoute.value.path).toBe("/");
    waiting[0]();
    await opened;
    expect(router.currentRoute.value.path).toBe("/traces/7");
  });

  it("is the trace view's code, warmed up, as soon as the page shows its session: once", async () => {
    const { state } = start();
    expect(loaded.view).not.toHaveBeenCalled();
    state.value = { ...emptyState, session: fakeSession() };
    await vi.waitFor(() => expect(loaded.warm).toHaveBeenCalledOnce());
    state.value = { ...emptyState, session: fakeSession({ pid: 2 }) };
    await Promise.resolve();
    expect(loaded.view).toHaveBeenCalledOnce();
  });

  it("fails in silence: the click tells why", async () => {
    loaded.view.mockRejectedValueOnce(new Error("no such chunk"));
    const { state } = start();
    state.value = { ...emptyState, session: fakeSession() };
    await vi.waitFor(() => expect(loaded.view).toHaveBeenCalledOnce());
    expect(loaded.warm).not.toHaveBeenCalled();
  });
});
