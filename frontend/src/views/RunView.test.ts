/** Slow steps and the time between steps, as a reader sees them. */
import { flushPromises, mount, type VueWrapper } from "@vue/test-utils";
import { createMemoryHistory, createRouter } from "vue-router";
import { describe, expect, it, vi } from "vitest";
import { FakeClient, fakeRun, fakeSession, fakeState, fakeTrace } from "../../dev/fake";
import { fakeGaps, fakeGroup, fakePeriod, fakeRunStalls, fakeStall } from "../../dev/slow";
import { createSession, sessionKey } from "@/state/session";
import SlowNotice from "@/slow/SlowNotice.vue";
import RunView from "./RunView.vue";

async function show(at: string, client = new FakeClient()): Promise<{ page: VueWrapper; client: FakeClient }> {
  const empty = { render: () => null };
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: "/", name: "overview", component: empty },
      { path: "/runs/:id", name: "run", component: RunView },
      { path: "/runs/:id/ops", name: "run-ops", component: empty },
      { path: "/traces/:id", name: "trace", component: empty },
    ],
  });
  await router.push(at);
  const page = mount(RunView, {
    global: {
      plugins: [router],
      provide: { [sessionKey as symbol]: createSession(client) },
      stubs: { StepChart: true },
    },
    attachTo: document.body,
  });
  await flushPromises();
  return { page, client };
}

describe("slow steps on a run's page", () => {
  it("says what comes regularly, and lists when, where, why, at which line, with the trace", async () => {
    const { page } = await show("/runs/1");
    const groups = page.findAll('[aria-label="Slow steps by cause"] > li').map((item) => item.text());
    expect(groups[0]).toContain("Every 97th step: the hook CheckpointSaverHook (basic_session_run_hooks.py:620)");
    expect(groups[0]).toMatch(
      /3 slow steps, 926\sms longer than usual in all, the longest 310\sms, last at step 291\./,
    );
    expect(groups[0]).toMatch(/310\sms \(median\) every 97 steps: the next is expected at step 388\./);
    expect(groups[1]).toMatch(/one slow step, 309\sms longer than usual, at step 150\.$/);
    const grid = page.find('[role="grid"][aria-label="Slow steps"]');
    expect(grid.attributes("aria-rowcount")).toBe("4");
    expect(grid.text()).toContain("load_batch() (train.py:88)");
    expect(grid.find('a[href="/traces/2"]').attributes("aria-label")).toBe("Open the trace of step 150");
    expect(page.find("#slow-steps").text()).toMatch(
      /p99 50\.2\sms, longest untraced step 213\sms.* without the time before the step/s,
    );
    expect(page.find(".numbers").attributes("title")).toContain("no time between steps");
    page.unmount();
  });

  it("is scrolled to the slow steps by a link to them", async () => {
    const scrolled: string[] = [];
    const scroll = vi.spyOn(Element.prototype, "scrollIntoView").mockImplementation(function (this: Element) {
      scrolled.push(this.id);
    });
    for (const at of ["/runs/1", "/runs/1#slow-steps"]) (await show(at)).page.unmount();
    expect(scrolled).toEqual(["slow-steps"]);
    scroll.mockRestore();
  });

  it("offers to trace a step only while there are steps to come", async () => {
    for (const ended_at of [null, 1_700_000_009]) {
      const runs = [fakeRun(1, { traces: [] })];
      const client = new FakeClient(fakeState({ session: fakeSession({ ended_at }), runs }));
      const { page } = await show("/runs/1", client);
      const text = page.findAll("section").at(-1)!.text();
      expect(text.includes("Trace next step")).toBe(ended_at === null);
      expect(text.includes("No step of this run was traced.")).toBe(ended_at !== null);
      page.unmount();
    }
  });

  it("names a step of a function of many signatures by its call, too, wherever it is shown", async () => {
    const text = "step 26 (call 2,211 of all signatures)";
    const client = new FakeClient();
    const last = { last_step: 26, last_call: 2211, last_text: text };
    const period = { ...fakePeriod, ...last, every: 50, next_step: 76, next_text: "call 2,261 of all signatures" };
    const group = fakeGroup({
      ...last,
      stalls: [1],
      periods: [period, { ...period, first_step: 2, next_text: "call 2,270" }],
    });
    const stalls = [fakeStall(1, { step: 26, call: 2211, step_text: text })];
    client.runStalls = { ...fakeRunStalls(), count: 1, groups: [group], stalls };
    const { page } = await show("/runs/1?stall=1", client);
    const item = page.find('[aria-label="Slow steps by cause"] > li');
    expect(item.text()).toContain(`last at ${text}.`);
    expect(item.text()).toMatch(/the next is expected at call 2,261 of all signatures\. 310\sms \(median\)/);
    const row = page.find('[role="grid"][aria-label="Slow steps"]').findAll('[role="row"]')[1]!;
    expect(row.text()).toContain("26 (call 2,211 of all signatures)");
    await item.find("button").trigger("click");
    expect(item.find('[aria-label="The steps of this group"]').text()).toContain(text);
    page.unmount();
  });

  it("opens a slow step with its cause, its stacks, and the stacks as a table", async () => {
    const { page } = await show("/runs/1?stall=1");
    const detail = page.find(".detail");
    expect(detail.text()).toContain("Before step 97: 310");
    expect(detail.text()).toContain("The evidence for this cause covers 83% of the time.");
    const items = detail.findAll('[role="treeitem"]');
    expect(items).toHaveLength(9);
    expect(items.filter((item) => item.attributes("tabindex") === "0")).toHaveLength(1);
    await items[1]!.trigger("focus");
    await items[1]!.trigger("keydown", { key: "ArrowDown" });
    expect(document.activeElement?.getAttribute("aria-label")).toMatch(/^load_batch \(train.py:10\): 250\sms, 78%/);
    expect(detail.find(".words").text()).toContain("x = np.sort(load(path))");
    await detail.findAll('[role="treeitem"]')[2]!.trigger("keydown", { key: "Enter" });
    expect(detail.findAll('[role="treeitem"]')).toHaveLength(3);
    await detail.findAll('[role="treeitem"]')[0]!.trigger("keydown", { key: "Escape" });
    expect(detail.findAll('[role="treeitem"]')).toHaveLength(9);
    expect(detail.text()).toContain("2 samples are not shown");
    await detail
      .findAll("button")
      .find((b) => b.text() === "Show as table")!
      .trigger("click");
    await flushPromises();
    expect(page.find('[role="grid"][aria-label="Lines of the stacks"]').text()).toContain("train.py:10");
    page.unmount();
  });

  it("has the chart's marks as a table", async () => {
    const { page } = await show("/runs/1?marks=1");
    const grid = page.find('[role="grid"][aria-label="Marks on the step history"]');
    expect(grid.text()).toContain("no CPU for 88%");
    expect(grid.text()).toContain("Garbage collection of generation 2");
    page.unmount();
  });

  it.each([
    ["on", "No slow step of this run"],
    ["off", "were not looked for"],
    ["", "Not known"],
  ] as const)("tells that there were none from that nobody looked (%s)", async (slow_watch, words) => {
    const client = new FakeClient(fakeState({ session: fakeSession({ slow_watch }) }));
    client.runStalls = fakeRunStalls({ stalls: [], count: 0, periods: [], marks: [] });
    const { page } = await show("/runs/1", client);
    expect(page.find("#slow-steps").text()).toContain(words);
    page.unmount();
  });

  it("opens a group: its steps side by side, their stacks as one graph, and one of them", async () => {
    const { page } = await show("/runs/1");
    await page.find('[aria-label="Slow steps by cause"] button').trigger("click");
    await flushPromises();
    const steps = page.find('[aria-label="The steps of this group"]');
    expect(steps.findAll("li")).toHaveLength(2);
    expect(steps.find('[role="img"]').attributes("aria-label")).toMatch(
      /^310\sms: TensorFlow, inside the step 0\.3%, Python code 19%, waiting for a disk 81%$/,
    );
    const tree = page.find('[aria-label="Stacks of 2 slow steps together"]');
    expect(tree.findAll('[role="treeitem"]')).toHaveLength(9);
    await steps.findAll("button")[1]!.trigger("click");
    await flushPromises();
    expect(page.find('[aria-label="What its time consists of"]').text()).toMatch(
      /waiting for a disk\s*250\sms\s*81%\s*0\ss/,
    );
    page.unmount();
  });

  it("says that a period ended, and why the watch sees less", async () => {
    const problem = {
      code: "slow_stacks",
      at: 0,
      message: "Stacks are not read: this process may not be read by others.",
    };
    const client = new FakeClient(fakeState({ session: fakeSession({ problems: [problem] }) }));
    const groups = [fakeGroup({ ended: true, periods: [{ ...fakePeriod, next_step: null, next_text: "" }] })];
    client.runStalls = fakeRunStalls({ groups });
    const { page } = await show("/runs/1", client);
    expect(page.find("#slow-steps").text()).toContain("Every 97 steps: ended after step 291.");
    expect(page.find("#slow-steps").text()).toContain(problem.message);
    page.unmount();
  });

  it("leaves out steps without a CPU if they are many, until the user shows them", async () => {
    const client = new FakeClient();
    const stalls = [fakeStall(1, { step: 50 }), ...[2, 3, 4, 5, 6].map((id) => fakeStall(id, { cause: "machine" }))];
    client.runStalls = fakeRunStalls({ stalls, count: 6 });
    const { page } = await show("/runs/1", client);
    const rows = (): number =>
      page.findAll('[role="grid"][aria-label="Slow steps"] [role="row"][aria-rowindex]').length;
    const alone = rows();
    await page
      .find("#slow-steps")
      .findAll("button")
      .find((b) => b.text() === "Show slow steps without a CPU")!
      .trigger("click");
    await flushPromises();
    expect(rows()).toBe(alone + 5);
    page.unmount();
  });

  it("shows what the trace says about slow steps whose cause is not known", async () => {
    const client = new FakeClient(fakeState({ runs: [fakeRun(1, { traces: [fakeTrace(2)] })] }));
    const unknown = fakeGroup({
      cause: "unknown",
      place: "",
      where: "inside",
      text: "The cause is not known",
      trace_id: 2,
    });
    client.runStalls = fakeRunStalls({ groups: [unknown, fakeGroup({ place: "elsewhere", trace_id: null })] });
    const { page } = await show("/runs/1", client);
    const [first, second] = page.findAll('[aria-label="Slow steps by cause"] > li');
    expect(first!.find("a").attributes("href")).toBe("/traces/2");
    expect(first!.text()).toMatch(/The trace of step \d+ says: 41% of the step waits for input/);
    expect(second!.text()).not.toContain("trace");
    page.unmount();
  });

  it("says how many of the slow steps are kept", async () => {
    const client = new FakeClient();
    client.runStalls = fakeRunStalls({ count: 1549 });
    const { page } = await show("/runs/1", client);
    expect(page.find("#slow-steps").text()).toContain("3 of 1,549 kept: the newest, and the costliest of each kind");
    page.unmount();
  });

  it("says that the step time drifts", async () => {
    const client = new FakeClient();
    const drift = { first_step: 1, last_step: 9000, first_s: 0.04, last_s: 0.05 };
    client.runStalls = fakeRunStalls({ changes: [], drift });
    const { page } = await show("/runs/1", client);
    expect(page.text()).toMatch(/Drifts, 25%\s*slower\s*little by little from step 1 to 9,000/);
    page.unmount();
  });

  it("shows names that try to be HTML as text", async () => {
    const evil = "<img src=x onerror=alert(1)>";
    const client = new FakeClient();
    const line = { ...fakeGaps().lines[0]!, function: evil, file: evil, calls: evil };
    client.gaps = fakeGaps({ lines: [line] });
    const stall = { ...fakeRunStalls().stalls[0]!, text: evil, lines: [line] };
    client.runStalls = fakeRunStalls({ stalls: [stall] });
    const { page } = await show("/runs/1", client);
    expect(page.find("img").exists()).toBe(false);
    expect(page.text().split(evil).length).toBeGreaterThan(3);
    page.unmount();
  });
});

describe("the time between steps", () => {
  it("is listed by line and function, and can be sampled again", async () => {
    const { page, client } = await show("/runs/1");
    const section = page.find('[aria-labelledby="gaps-title"]');
    expect(section.text()).toContain(
      "30% of that time passed between steps, slow steps included; 10% of that is garbage collection",
    );
    expect(section.find('[aria-label="Lines between steps"]').text()).toContain("train.py:88");
    expect(section.find('[aria-label="Lines on other threads"]').text()).toContain("augment");
    await section.find("button.button:not(.quiet)").trigger("click");
    expect(client.calls).toContain("gaps 1");
    page.unmount();
  });

  it("says that the lines of an eager loop are those of its steps, too", async () => {
    const client = new FakeClient(fakeState());
    client.gaps = fakeGaps({ whole_turns: true });
    const { page } = await show("/runs/1", client);
    const section = page.find('[aria-labelledby="gaps-title"]');
    expect(section.find("h2").text()).toBe("Steps and between them");
    expect(section.text()).toContain("60 samples of 500 steps");
    expect(section.text()).toContain(
      "The lines are those of the steps, which run Python, and of the time between them.",
    );
    expect(section.find('[aria-label="Lines of steps"]').text()).toContain("train.py:88");
    page.unmount();
  });

  it("says why there are no lines, and offers no sampling without training", async () => {
    const client = new FakeClient(fakeState({ session: fakeSession({ live: false }) }));
    client.gaps = fakeGaps({
      state: "none",
      sampled_at: null,
      share: null,
      lines: [],
      other_lines: [],
      text: "Not sampled.",
    });
    const { page } = await show("/runs/1", client);
    const section = page.find('[aria-labelledby="gaps-title"]');
    expect(section.text()).toContain("Not sampled.");
    expect(section.text()).not.toContain("Sample for 20 s");
    page.unmount();
  });
});

describe("the overview's notice", () => {
  it("is shown only for a run with slow steps", () => {
    const slow_steps = {
      count: 3,
      longest_s: 0.5,
      lost_s: 0.31,
      last_at: 5,
      text: "Every 97th step: 310 ms",
      trace_id: null,
      gaps_at: null,
    };
    const stubs = { RouterLink: { template: "<a><slot /></a>" } };
    const notice = (run = fakeRun(1, { traces: [fakeTrace(1)] })): string =>
      mount(SlowNotice, { props: { run }, global: { stubs } }).text();
    expect(notice(fakeRun(1, { slow_steps }))).toMatch(
      /3 slow steps\s*took 310\sms more than usual\.\s*Every 97th step/,
    );
    expect(notice()).toBe("");
    const traces = [fakeTrace(7, { step: 194, headline: "Communication runs for 99% of the step." })];
    expect(notice(fakeRun(1, { traces, slow_steps: { ...slow_steps, trace_id: 7 } }))).toContain(
      "Every 97th step: 310 ms. The trace of step 194 says: Communication runs for 99% of the step.",
    );
  });
});
