/** The job's page and its steps, as a reader sees them. */
import { flushPromises, mount, RouterLinkStub, type VueWrapper } from "@vue/test-utils";
import { afterEach, describe, expect, it, vi } from "vitest";
import { FakeClient, fakeJob, fakeState } from "../../dev/fake";
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
  it("say why some are not in them, and can be taken back while they are waited for", async () => {
    const asked = vi.fn(() => Promise.resolve(new Response("{}", { headers: { "Content-Type": "application/json" } })));
    vi.stubGlobal("fetch", asked);
    const page = mount(JobTraces, { props: { job: { ...fakeJob, traces: [pending] } as Job }, global });
    expect(page.text()).toContain("1 of 4 so far");
    await button(page, "Take back").trigger("click");
    await flushPromises();
    expect(asked).toHaveBeenCalledWith(
      expect.stringMatching(/api\/job\/traces\/7$/),
      expect.objectContaining({ method: "DELETE" }),
    );
    await page.setProps({ job: fakeJob });
    expect(page.text()).toContain("rank 3: it does not answer");
    expect(button(page, "Take back")).toBeUndefined();
  });
});

describe("the job's page", () => {
  it("lists the slow steps by rank, each with a link to the rank's page", async () => {
    const client = new FakeClient(fakeState({ job: fakeJob }));
    const provide = { [sessionKey as symbol]: createSession(client) };
    const page = mount(JobView, { global: { ...global, provide } });
    await flushPromises();
    const section = page.find('[aria-labelledby="job-slow-title"]');
    expect(section.text()).toContain("3 slow steps in 1 process");
    expect(section.text()).toMatch(/rank 2\s*3: Every 97th step/);
    expect(section.find('[role="grid"]').text()).toContain("CheckpointSaverHook (basic_session_run_hooks.py:620)");
    expect(section.find('a[href="/job/processes/p2/runs/1?stall=1"]').text()).toBe("rank 2");
    page.unmount();
  });

  it("asks the ticked ranks alone, and never those that are gone", async () => {
    const client = new FakeClient(fakeState({ job: fakeJob }));
    const provide = { [sessionKey as symbol]: createSession(client) };
    const page = mount(JobView, { global: { ...global, provide }, attachTo: document.body });
    await flushPromises();
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
