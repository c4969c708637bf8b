/** The job's page and its steps, as a reader sees them. */
import { flushPromises, mount, RouterLinkStub, type VueWrapper } from "@vue/test-utils";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createMemoryHistory, createRouter, type Router } from "vue-router";
import { FakeClient, fakeJob, fakeSession, fakeState } from "../../dev/fake";
import type { Job, JobTensor, JobTrace } from "@/client/messages";
import JobTraces from "@/components/JobTraces.vue";
import { createSession, sessionKey } from "@/state/session";
import JobView from "./JobView.vue";
import { tensorColumns } from "@/workbench/analyses/rankColumns";

const global = { stubs: { RouterLink: RouterLinkStub } };
const pending: JobTrace = { ...fakeJob.traces[0]!, id: 7, state: "pending", ready: ["p0"], missing: {} };

function button(page: VueWrapper, text: string): ReturnType<VueWrapper["find"]> {
  return page.findAll("button").find((b) => b.text().includes(text))!;
}

afterEach(() => vi.unstubAllGlobals());

describe("the steps traced together", () => {
  it("say which ranks are missing and why, and can be cancelled while they are pending", async () => {
    const fetched = vi.fn(() =>
      Promise.resolve(new Response("{}", { headers: { "Content-Type": "application/json" } })),
    );
    vi.stubGlobal("fetch", fetched);
    const page = mount(JobTraces, { props: { job: { ...fakeJob, traces: [pending] } as Job }, global });
    expect(page.text()).toContain("1 of 4 so far");
    await button(page, "Take back").trigger("click");
    await flushPromises();
    expect(fetched).toHaveBeenCalledWith(
      expect.stringMatching(/api\/job\/traces\/7$/),
      expect.objectContaining({ method: "DELETE" }),
    );
    await page.setProps({ job: fakeJob });
    expect(page.text()).toContain("rank 3: it does not answer");
    expect(button(page, "Take back")).toBeUndefined();
  });
});

/** The job's page at "/job", with its router. */
async function jobPage(client: FakeClient): Promise<{ page: VueWrapper; router: Router }> {
  const routes = [
    { path: "/job", name: "job", component: JobView },
    { path: "/job/traces/:id", name: "job-trace", component: { render: (): null => null } },
  ];
  const router = createRouter({ history: createMemoryHistory(), routes });
  await router.push("/job");
  const provide = { [sessionKey as symbol]: createSession(client) };
  const page = mount(JobView, { global: { plugins: [router], provide }, attachTo: document.body });
  await flushPromises();
  return { page, router };
}

describe("the job's page", () => {
  it("adds up where the time went, over the processes that report it", async () => {
    const { page } = await jobPage(new FakeClient(fakeState({ job: fakeJob })));
    const card = page.find('[data-testid="job-ledger"]');
    expect(card.findAll(".rows li").map((line) => line.find(".title").text())).toEqual([
      "All 3",
      "rank 0",
      "rank 1",
      "rank 2",
    ]);
    const [all, , slow] = card.findAll('[role="img"]').map((bar) => bar.attributes("aria-label"));
    expect(slow).toBe("rank 1: Start, until the first step 7.1%, Waiting for input 35.3%, Steps 57.6%");
    expect(all).toContain("Waiting for input 17.1%");
    page.unmount();
  });

  it("has the script as its title, and tells a rank that waits from one that is slow between its steps", async () => {
    const { page } = await jobPage(new FakeClient(fakeState({ job: fakeJob })));
    expect(page.find("h1").text()).toBe(fakeSession().command);
    const heads = page.findAll('[role="columnheader"]').map((head) => head.text());
    expect(heads.indexOf("Between steps")).toBe(heads.findIndex((head) => head.startsWith("Mean step")) + 1);
    const slow = page.findAll('[role="row"]').find((line) => line.text().includes("rank 1"));
    expect(slow?.text()).toContain("21.4");
    page.unmount();
  });

  it("opens the step whose traces were requested here, and no other one", async () => {
    const client = new FakeClient(fakeState({ job: fakeJob }));
    const { page, router } = await jobPage(client);
    const requested = { ...pending, id: 9 };
    client.change({ job: { ...fakeJob, traces: [{ ...pending, id: 8, state: "ready" }] } });
    await flushPromises();
    expect(router.currentRoute.value.fullPath).toBe("/job");
    await button(page, "Trace a step on all ranks").trigger("click");
    client.change({ job: { ...fakeJob, traces: [requested] } });
    await flushPromises();
    expect(router.currentRoute.value.fullPath).toBe("/job");
    client.change({ job: { ...fakeJob, traces: [{ ...requested, state: "ready" }] } });
    await flushPromises();
    expect(router.currentRoute.value.fullPath).toBe("/job/traces/9");
    page.unmount();
  });

  it("does not open a traced step that lacks a rank, but lists it with the reason", async () => {
    const client = new FakeClient(fakeState({ job: fakeJob }));
    const { page, router } = await jobPage(client);
    await button(page, "Trace a step on all ranks").trigger("click");
    client.change({ job: { ...fakeJob, traces: [{ ...pending, id: 9, state: "partial", missing: { p3: "gone" } }] } });
    await flushPromises();
    expect(router.currentRoute.value.fullPath).toBe("/job");
    expect(page.text()).toContain("rank 3: gone");
    page.unmount();
  });

  it("lists the slow steps by rank, each with a link to the rank's page", async () => {
    const { page } = await jobPage(new FakeClient(fakeState({ job: fakeJob })));
    const section = page.find('[aria-labelledby="job-slow-title"]');
    expect(section.text()).toContain("3 slow steps in 1 process");
    expect(section.text()).toMatch(/rank 2\s*3: Every 97th step/);
    expect(section.find('[role="grid"]').text()).toContain("CheckpointSaverHook (basic_session_run_hooks.py:620)");
    expect(section.find('a[href="/job/processes/p2/runs/1?stall=1"]').text()).toBe("rank 2");
    page.unmount();
  });

  it("traces only the selected ranks, and never those that are gone", async () => {
    const client = new FakeClient(fakeState({ job: fakeJob }));
    const { page } = await jobPage(client);
    const boxes = page.findAll<HTMLInputElement>("input[type=checkbox]");
    expect(boxes.map((box) => box.element.disabled)).toEqual([false, false, false, true]);
    await boxes[1]!.setValue(true);
    await boxes[2]!.setValue(true);
    await boxes[2]!.setValue(false);
    await button(page, "Trace a step on 1 rank").trigger("click");
    await button(page, "Save the job").trigger("click");
    expect(client.calls).toEqual(['job {"processes":["p1"]}', "download the job"]);
    page.unmount();
  });
});

describe("tensors between processes", () => {
  it("say how long they were waited for", () => {
    const waited = tensorColumns.find((column) => column.key === "waited")!;
    expect(waited.text?.({ waited_ns: 1_500_000 } as JobTensor)).toContain("1.50");
  });
});
