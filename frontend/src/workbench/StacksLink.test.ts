/** The link from a trace to the Python stacks of its step. */
import { flushPromises, mount, type VueWrapper } from "@vue/test-utils";
import { createMemoryHistory, createRouter } from "vue-router";
import { describe, expect, it } from "vitest";
import { FakeClient, fakeRun } from "../../dev/fake";
import { createSession, sessionKey } from "@/state/session";
import StacksLink from "./StacksLink.vue";

async function shown(trace: number, slowSteps = true): Promise<VueWrapper> {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: "/runs/:id", name: "run", component: { render: () => null } }],
  });
  await router.push("/runs/1");
  const { slow_steps } = fakeRun(1);
  const run = fakeRun(1, { slow_steps: { ...slow_steps, count: slowSteps ? 3 : 0 } });
  const page = mount(StacksLink, {
    props: { run, trace },
    global: { plugins: [router], provide: { [sessionKey as symbol]: createSession(new FakeClient()) } },
  });
  await flushPromises();
  return page;
}

describe("the link from a trace to Python's stacks", () => {
  it("leads from the trace of a slow step to that step's stacks", async () => {
    const link = (await shown(2)).find("a");
    expect(link.attributes("href")).toMatch(/^\/runs\/1\?stall=\d+$/);
    expect(link.text()).toBe("Python stacks of this slow step");
  });

  it("is not shown for a trace of another step, nor if no step was slow", async () => {
    expect((await shown(99)).find("a").exists()).toBe(false);
    expect((await shown(2, false)).find("a").exists()).toBe(false);
  });
});
