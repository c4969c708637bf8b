import { flushPromises } from "@vue/test-utils";
import { createMemoryHistory, createRouter, type Router } from "vue-router";
import { describe, expect, it } from "vitest";
import { FakeClient, fakeJob, fakeRun, fakeSession, fakeState, fakeTrace } from "../../dev/fake";
import type { SessionState } from "@/client/client";
import { openFile } from "./opening";

const file = { session: fakeSession({ live: false }), job: null };
const one = fakeRun(1, { traces: [fakeTrace(7)] });
const two = fakeRun(2, { traces: [fakeTrace(8)] });

async function opened(state: SessionState, at = "/", early = false): Promise<Router> {
  const view = { render: (): null => null };
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: "/", name: "overview", component: view },
      { path: "/job", name: "job", component: view },
      { path: "/runs/:id", name: "run", component: view },
      { path: "/traces/:id", name: "trace", component: view },
    ],
  });
  await router.push(at);
  const client = new FakeClient(early ? state : { ...state, session: null });
  await openFile(router, client);
  if (!early) client.change(state);
  await flushPromises();
  return router;
}
const pathOf = async (...parameters: Parameters<typeof opened>): Promise<string> =>
  (await opened(...parameters)).currentRoute.value.fullPath;

describe("the page of a file", () => {
  it("opens on the file's only trace", async () => {
    expect(await pathOf(fakeState({ ...file, runs: [one, fakeRun(3)] }))).toBe("/traces/7");
  });

  it("opens on it, too, if the session was known before the first view was loaded", async () => {
    expect(await pathOf(fakeState({ ...file, runs: [one] }), "/", true)).toBe("/traces/7");
  });

  it("opens on the job that was saved", async () => {
    expect(await pathOf(fakeState({ ...file, runs: [one], job: fakeJob }))).toBe("/job");
  });

  it("stays on the overview if there are several traces or the session is live, and on a link's own view", async () => {
    expect(await pathOf(fakeState({ ...file, runs: [one, two] }))).toBe("/");
    expect(await pathOf(fakeState({ ...file, runs: [one] }), "/runs/1")).toBe("/runs/1");
    expect(await pathOf(fakeState({ ...file, runs: [one] }), "/?order=steps")).toBe("/?order=steps");
    expect(await pathOf(fakeState({ runs: [one] }))).toBe("/");
  });
});
