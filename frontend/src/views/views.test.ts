/** The components over a made-up session, as a reader sees them. */
import { flushPromises, mount, type VueWrapper } from "@vue/test-utils";
import { createMemoryHistory, createRouter } from "vue-router";
import { describe, expect, it, vi } from "vitest";
import { FakeClient, fakeJob, fakeRun, fakeSession, fakeState, fakeTrace, truncated } from "../../dev/fake";
import { ClientError, type SessionState } from "@/client/client";
import type { Run } from "@/client/messages";
import { createSession, sessionKey } from "@/state/session";
import { useToasts } from "@/state/toasts";
import JobView from "./JobView.vue";
import OverviewView from "./OverviewView.vue";
import RunView from "./RunView.vue";
import SessionBanners from "@/components/SessionBanners.vue";
import VirtualTable from "@/components/VirtualTable.vue";
import type { TableColumn } from "@/components/table";

const views = { "/": OverviewView, "/runs/:id": RunView, "/job": JobView };

async function show(
  path: keyof typeof views,
  state: SessionState,
  at: string = path,
): Promise<{ page: VueWrapper; client: FakeClient }> {
  const client = new FakeClient(state);
  const routes = Object.entries(views).map(([p, component]) => ({
    path: p,
    component,
    name: p.split("/")[1] === "runs" ? "run" : p,
  }));
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      ...routes,
      { path: "/runs/:id/ops", name: "run-ops", component: { render: () => null } },
      { path: "/traces/:id", name: "trace", component: { render: () => null } },
      { path: "/job/traces/:id", name: "job-trace", component: { render: () => null } },
    ],
  });
  await router.push(at);
  const session = createSession(client);
  const page = mount(views[path], {
    global: { plugins: [router], provide: { [sessionKey as symbol]: session }, stubs: { StepChart: true } },
    attachTo: document.body,
  });
  await flushPromises();
  return { page, client };
}

function button(page: VueWrapper, text: string): ReturnType<VueWrapper["find"]> {
  const match = page.findAll("button").find((b) => b.text().includes(text));
  if (!match) throw new Error(`no button "${text}" in ${page.text()}`);
  return match;
}

describe("the overview", () => {
  it("without a run says what the script is, and shows how to pass a hook only where one may be missing", async () => {
    const session = fakeSession({ no_steps: "Keras computes with torch in this script." });
    const { page, client } = await show("/", fakeState({ runs: [], session }));
    expect(page.find('[data-testid="no-steps"]').text()).toBe(session.no_steps);
    const every = page.find('[role="switch"]'); // a first step may still come
    expect([every.attributes("disabled"), every.attributes("title")]).toEqual([undefined, session.no_steps]);
    expect(page.text()).not.toContain("hook");
    client.change({ session: fakeSession() });
    await flushPromises();
    expect(page.text()).toContain("tracing_server.hook");
    client.change({ session: { ...session, ended_at: 5 } });
    await flushPromises();
    expect(page.text()).toContain("The script has ended. Keras computes with torch");
    page.unmount();
  });

  it("without a run shows where the time goes all the same, and asks again while the script runs", async () => {
    vi.useFakeTimers();
    const { page, client } = await show("/", fakeState({ runs: [], session: fakeSession() }));
    const gets = vi.spyOn(client, "get");
    for (const card of ["ledger", "pipelines"]) expect(page.find(`[data-testid="${card}"]`).exists()).toBe(true);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(gets.mock.calls.filter(([path]) => path === "input-pipelines").length).toBeGreaterThan(1);
    client.change({ session: fakeSession({ ended_at: 5 }) });
    await vi.advanceTimersByTimeAsync(10_000);
    gets.mockClear();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(gets).not.toHaveBeenCalled();
    page.unmount();
    vi.useRealTimers();
  });

  it("folds runs of one step, but not those that a search finds", async () => {
    const still = { ...fakeRun(1).slow_steps, count: 0 };
    const one = (id: number, title: string, steps: number): Run =>
      fakeRun(id, { title, fetches: [title], steps, mean_s: 0.01, traces: [], slow_steps: still });
    const runs = [one(1, "init", 1), one(2, "save/control_dependency", 2), one(3, "train", 900)];
    const { page } = await show("/", fakeState({ runs }));
    const folded = page.find('[data-testid="rare-runs"]');
    expect(page.find("h3").text()).toBe("train");
    expect(folded.text()).toContain("2 runs of one or few steps");
    expect(folded.findAll("article")).toHaveLength(2);
    page.unmount();
    const { page: found } = await show("/", fakeState({ runs }), "/?filter=save");
    expect(found.findAll("article")).toHaveLength(1);
    expect(found.find('[data-testid="rare-runs"]').exists()).toBe(false);
    found.unmount();
  });

  it("says of a compiled function where it is defined, and names it by its title", async () => {
    const run = fakeRun(1, {
      title: "distributed_step (8,8)",
      fetches: ["distributed_step at train.py:29"],
      feeds: [],
      definition: "train.py:29",
    });
    const { page } = await show("/", fakeState({ runs: [run] }));
    expect(page.find("h3").text()).toBe("distributed_step (8,8)");
    expect(page.text()).toContain("train.py:29");
    expect(page.text()).not.toContain("no feeds");
  });

  it("shows as unknown what a file of one trace does not contain, and says while a trace is analyzed", async () => {
    const foreign = fakeRun(1, { steps: 0, fetches: [], feeds: [], title: "Run metadata", recent_s: [] });
    const { page } = await show(
      "/",
      fakeState({ runs: [{ ...foreign, traces: [fakeTrace(1, { step: null, duration_s: null })] }] }),
    );
    expect(page.text()).toContain("Stepsunknown");
    expect(page.text()).toContain("fetches and feeds unknown");
    expect(page.text()).not.toContain("no feeds");
    page.unmount();
    const fresh = fakeTrace(2, { state: "pending", nodes: null, devices: [], findings: [], headline: "" });
    const { page: later } = await show("/", fakeState({ runs: [fakeRun(1, { traces: [fresh] })] }));
    expect(later.text()).toContain("Analyzing…");
    later.unmount();
  });

  it("shows no empty charts of a run whose steps are unknown", async () => {
    const foreign = fakeRun(1, { steps: 0, fetches: [], feeds: [], traces: [fakeTrace(1, { step: null })] });
    const { page } = await show("/runs/:id", fakeState({ runs: [foreign] }), "/runs/1");
    expect(page.text()).toContain("Step times are unknown");
    expect(page.text()).not.toContain("Spread");
    expect(page.text()).not.toContain("0 s");
    page.unmount();
  });

  it("lists runs with their numbers and traces", async () => {
    const { page } = await show(
      "/",
      fakeState({ runs: [fakeRun(1, { traces: [fakeTrace(1, { findings: [truncated] })] })] }),
    );
    for (const words of [
      "train_op, loss, global_step",
      "12,345",
      "41.2",
      "gpu-node-07",
      "Tesla V100-SXM2-16GB (7.0)",
      "8,009",
      "1.48×",
      "waits for input",
    ]) {
      expect(page.text()).toContain(words);
    }
    expect(page.find('a[href="/traces/1"]').exists()).toBe(true);
    expect(page.find(".mark").text()).toContain("1,048,576 nodes");
    page.unmount();
  });

  it("shows the tracer's cost for what the process runs", async () => {
    const [ofSession, ofFunction] = [fakeRun(1, { definition: "" }), fakeRun(2, { definition: "Keras" })];
    const session = fakeSession({ hook_cost_s: 2e-6, call_cost_s: 1e-6 });
    const cost = async (runs: Run[]): Promise<string> => {
      const { page } = await show("/", fakeState({ runs, session }));
      const shown = page.findAll(".facts > div").find((fact) => fact.text().startsWith("Tracer's cost"));
      page.unmount();
      return shown ? `${shown.find("dd").text().replace(/\s/g, " ")}: ${shown.attributes("title") ?? ""}` : "";
    };
    expect(await cost([])).toBe("");
    expect(await cost([ofSession])).toMatch(/^2\.00 µs a step: What the tracer adds to a step of a session that/);
    expect(await cost([ofFunction])).toMatch(
      /^1\.00 µs a call: What the tracer adds to a call of a compiled function that/,
    );
    expect(await cost([ofFunction, ofSession])).toContain("2.00 µs a step, 1.00 µs a call");
  });

  it("has the script's name as its title, without a long path", async () => {
    const command = "/home/someone/projects/vision/train.py --data /data/images";
    const { page } = await show("/", fakeState({ session: fakeSession({ command }) }));
    expect(page.find("h1").text()).toBe("train.py --data /data/images");
    expect(page.find("h1").attributes("title")).toBe(command);
    page.unmount();
  });

  it("shows names that try to be HTML as text", async () => {
    const evil = "<img src=x onerror=alert(1)>";
    const trace = fakeTrace(1, {
      headline: evil,
      note: evil,
      devices: [evil],
      findings: [{ ...truncated, message: evil }],
    });
    const run = fakeRun(1, { title: evil, fetches: [evil], feeds: [evil], options: evil, traces: [trace] });
    const { page } = await show("/", fakeState({ runs: [run], session: fakeSession({ command: evil, host: evil }) }));
    expect(page.find("img").exists()).toBe(false);
    expect(page.text().split(evil).length).toBeGreaterThan(6);
    page.unmount();
  });

  it("requests traces and cancels the request", async () => {
    const { page, client } = await show("/", fakeState({ runs: [fakeRun(1, { pending_traces: 2 })] }));
    await button(page, "Trace next step").trigger("click");
    await page.find('input[type="number"]').setValue(7);
    await page.find("form.several").trigger("submit");
    await button(page, "Cancel").trigger("click");
    expect(client.calls).toEqual(["trace 1 1", "trace 1 7", "trace 1 0"]);
    page.unmount();
  });

  it("offers a trace with its graph on the run's page only, and says first what it costs", async () => {
    HTMLDialogElement.prototype.showModal ??= () => undefined;
    const runs = [fakeRun(1, { graph_on_request: true }), fakeRun(2)];
    const { page, client } = await show("/runs/:id", fakeState({ runs }), "/runs/1");
    await button(page, "Trace with its graph").trigger("click");
    expect(page.get("dialog").text()).toContain("The next step takes longer");
    await page.get("dialog").findAll("button")[0]?.trigger("click");
    expect(client.calls.filter((call) => call.startsWith("trace"))).toEqual([]);
    await button(page, "Trace with its graph").trigger("click");
    await page.get("dialog").findAll("button")[1]?.trigger("click");
    expect(client.calls.filter((call) => call.startsWith("trace"))).toEqual(["trace 1 1 with its graph"]);
    page.unmount();
    const { page: others } = await show("/runs/:id", fakeState({ runs }), "/runs/2");
    expect(others.text()).not.toContain("Trace with its graph");
    others.unmount();
  });

  it("says why a request failed", async () => {
    const { page, client } = await show("/", fakeState());
    client.failure = new ClientError(409, "unsupported", "This session was reopened from a file.");
    await button(page, "Trace next step").trigger("click");
    await flushPromises();
    expect(useToasts().value.at(-1)).toMatchObject({ kind: "error", text: "This session was reopened from a file." });
    page.unmount();
  });

  it("warns before it traces everything", async () => {
    const { page, client } = await show("/", fakeState());
    await page.find('[role="switch"]').trigger("click");
    expect(page.find("dialog").text()).toContain("slow");
    expect(client.calls).toEqual([]);
    await page.find("dialog .primary").trigger("click");
    expect(client.calls).toEqual(["trace all true"]);
    page.unmount();
  });

  it("follows changes, and offers no tracing without training", async () => {
    const { page, client } = await show("/", fakeState());
    client.change({ runs: [fakeRun(1, { steps: 12_399 })] });
    await flushPromises();
    expect(page.text()).toContain("12,399");
    client.change({ session: fakeSession({ live: false, ended_at: 1 }) });
    await flushPromises();
    expect(page.text()).not.toContain("Trace next step");
    expect(page.find('[role="switch"]').exists()).toBe(false);
    page.unmount();
  });

  it("explains how to start when it is empty", async () => {
    const { page } = await show("/", fakeState({ runs: [] }));
    expect(page.text()).toContain("hooks=[tracing_server.hook]");
    expect(page.text()).toContain("hook_inject()");
    page.unmount();
  });

  it("saves a note, and discards a change on Escape", async () => {
    const { page, client } = await show("/", fakeState({ runs: [fakeRun(1, { traces: [fakeTrace(1)] })] }));
    await button(page, "Add a note").trigger("click");
    await page.find("form.note input").setValue(" odd step ");
    await page.find("form.note").trigger("submit");
    await flushPromises();
    expect(client.calls).toEqual(["note 1 odd step"]);
    await button(page, "Add a note").trigger("click");
    await page.find("form.note input").setValue("never mind");
    await page.find("form.note input").trigger("keydown", { key: "Escape" });
    expect(client.calls).toHaveLength(1);
    page.unmount();
  });

  it("filters and orders many runs", async () => {
    const runs = Array.from({ length: 8 }, (_, i) =>
      fakeRun(i + 1, { fetches: [`fetch_${i}`], title: `fetch_${i}`, steps: i }),
    );
    const { page } = await show("/", fakeState({ runs }), "/?filter=/_[67]$/&order=steps");
    expect(page.findAll("h3").map((h) => h.text())).toEqual(["fetch_7", "fetch_6"]);
    page.unmount();
  });
});

describe("a run's page", () => {
  it("says where the step time changed and what tracing cost", async () => {
    const { page } = await show(
      "/runs/:id",
      fakeState({ runs: [fakeRun(1, { traces: [fakeTrace(1)] })] }),
      "/runs/1?table=1",
    );
    await flushPromises();
    expect(page.text()).toMatch(/3\d% slower\s*from step 5,\d+/);
    expect(page.text()).toContain("19.8");
    expect(page.find('[role="grid"][aria-label="Step times"]').attributes("aria-rowcount")).toBe("901");
    page.unmount();
  });

  it("does not say that a traced step took longer by a negative time", async () => {
    const { page } = await show(
      "/runs/:id",
      fakeState({ runs: [fakeRun(1, { traced_overhead_s: -12e-6 })] }),
      "/runs/1",
    );
    await flushPromises();
    expect(page.text()).toContain("A traced step took no longer than those around it.");
    page.unmount();
  });

  it("says so when there is no such run", async () => {
    const { page } = await show("/runs/:id", fakeState(), "/runs/99");
    expect(page.text()).toContain("There is no such run");
    page.unmount();
  });
});

describe("a job's page", () => {
  it("lists the processes and traces a step on all of them", async () => {
    const { page, client } = await show("/job", fakeState({ job: fakeJob }));
    for (const words of ["rank 3", "Lost", "gpu-node-08", "it does not answer", "3 of 4"])
      expect(page.text()).toContain(words);
    await button(page, "Trace a step on all ranks").trigger("click");
    expect(client.calls).toEqual(["job {}"]);
    page.unmount();
  });
});

describe("banners", () => {
  function banners(state: Partial<SessionState>): VueWrapper {
    const session = createSession(new FakeClient(fakeState(state)));
    return mount(SessionBanners, { global: { provide: { [sessionKey as symbol]: session } } });
  }

  it("has a banner for each trouble, and none if all is well", () => {
    expect(banners({}).text()).toBe("");
    expect(banners({ connection: "reconnecting" }).text()).toContain("The connection is lost");
    expect(banners({ connection: "closed", reason: "Shut down." }).text()).toContain("Shut down.");
    expect(banners({ session: fakeSession({ ended_at: 5, active: false }) }).text()).toContain("The script has ended");
    expect(banners({ session: fakeSession({ cut: "1 trace is lost." }) }).text()).toContain("1 trace is lost.");
    expect(banners({ session: fakeSession({ damage: "2 records." }) }).text()).toContain("could be read. 2 records.");
    expect(banners({ session: fakeSession({ steps_lost: 3 }) }).text()).toContain("3 steps were not counted");
    const problems = [{ code: "hook", message: "The hook failed once.", at: 5 }];
    expect(
      banners({ session: fakeSession({ problems }) })
        .find('[role="alert"]')
        .text(),
    ).toContain("The hook failed once.");
  });
});

describe("a table by keys", () => {
  const columns: TableColumn<number>[] = [{ key: "n", title: "Number", value: (n) => n, numeric: true }];
  const rows = Array.from({ length: 10_000 }, (_, i) => i);

  it("draws the rows in sight only, moves, selects and activates", async () => {
    const table = mount(VirtualTable<number>, { props: { label: "Numbers", columns, rows, rowKey: (n: number) => n } });
    const grid = table.find('[role="grid"]');
    expect(table.findAll('[role="row"]').length).toBeLessThan(60);
    expect(grid.attributes("aria-rowcount")).toBe("10001");
    await grid.trigger("keydown", { key: "ArrowDown" });
    await grid.trigger("keydown", { key: "ArrowDown" });
    await grid.trigger("keydown", { key: "Enter" });
    await grid.trigger("keydown", { key: "End" });
    expect(table.emitted("select")).toEqual([[0], [1], [9999]]);
    expect(table.emitted("activate")).toEqual([[1]]);
  });

  it("sorts by a click on the head", async () => {
    const table = mount(VirtualTable<number>, {
      props: { label: "Numbers", columns, rows, rowKey: (n: number) => n, sort: null },
    });
    await table.find(".sort").trigger("click");
    expect(table.emitted("update:sort")).toEqual([[{ key: "n", descending: true }]]);
    await table.setProps({ sort: { key: "n", descending: true } });
    expect(table.findAll('[role="row"]')[1]?.text()).toBe("9999");
    expect(table.find('[role="columnheader"]').attributes("aria-sort")).toBe("descending");
  });
});
