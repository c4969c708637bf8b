/** Ops over a run's traces, as a reader sees them. */
import { flushPromises, mount, type VueWrapper } from "@vue/test-utils";
import { createMemoryHistory, createRouter, type Router } from "vue-router";
import { describe, expect, it } from "vitest";
import { FakeClient } from "../../dev/fake";
import type { RunOp, RunOps } from "@/client/messages";
import { createSession, sessionKey } from "@/state/session";
import RunOpsView from "./RunOpsView.vue";

const STEPS = [10, 20, 30, 40, 50];

function op(key: string, total_ns: (number | null)[], share: number): RunOp {
  const known = total_ns.filter((ns) => ns !== null).sort((a, b) => a - b);
  const mean_ns = known.reduce((sum, ns) => sum + ns, 0) / known.length;
  const times = { mean_ns, median_ns: known[known.length >> 1]!, shortest_ns: known[0]!, longest_ns: known.at(-1)! };
  const node = total_ns.map((ns, i) => (ns === null ? -1 : 100 + i));
  const spread_ns = known.length > 1 ? 5e5 : null;
  const computed = { flops: 4e9, best_flop_rate: 1e12, median_flop_rate: known.length > 1 ? 8e11 : null };
  return { key, op: key, traces: known.length, count: 2, ...times, spread_ns, share, ...computed, total_ns, node };
}

const ops: RunOps = {
  by: "type",
  traces: STEPS.map((step, i) => ({ id: i + 1, step, step_ns: 1e7 })),
  rows: [op("MatMul", [4e6, 5e6, 6e6, 5e6, 9e6], 0.8), op("SaveV2", [null, null, 2e6, null, null], 0.2)],
  left_out: 0,
  summary: "Of the run's 9 traces the newest 5 are read.",
};

async function show(at: string, answer = ops): Promise<{ page: VueWrapper; router: Router }> {
  class OpsClient extends FakeClient {
    override answers(path: string): unknown {
      return path === "runs/1/ops?by=type" ? answer : super.answers(path);
    }
  }
  const empty = { render: () => null };
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: "/", name: "overview", component: empty },
      { path: "/runs/:id", name: "run", component: empty },
      { path: "/runs/:id/ops", name: "run-ops", component: RunOpsView },
      { path: "/traces/:id", name: "trace", component: empty },
    ],
  });
  await router.push(at);
  const provide = { [sessionKey as symbol]: createSession(new OpsClient()) };
  const page = mount(RunOpsView, { global: { plugins: [router], provide }, attachTo: document.body });
  await flushPromises();
  return { page, router };
}

describe("ops over a run's traces", () => {
  it("says which traces it covers, and shows each op's times with their spread", async () => {
    const { page } = await show("/runs/1/ops");
    expect(page.find("h1").text()).toBe("Ops over 5 traces");
    expect(page.text()).toContain(ops.summary);
    const rows = page.findAll('[role="row"]').slice(1);
    expect(rows.map((row) => row.text().replace(/\s+/g, " "))).toEqual([
      expect.stringMatching(
        /^MatMul ?5 of 5 ?2\.00 ?80% ?5\.80 ms ?5\.00 ms ?500 µs ?4\.00 ms ?9\.00 ms ?4\.00 GFLOP ?1\.00 TFLOP\/s ?800 GFLOP\/s$/,
      ),
      expect.stringMatching(
        /^SaveV2 ?1 of 5 ?2\.00 ?20% ?2\.00 ms ?2\.00 ms ?– ?2\.00 ms ?2\.00 ms ?4\.00 GFLOP ?1\.00 TFLOP\/s ?unknown$/,
      ),
    ]);
    page.unmount();
  });

  it("shows the op with the largest share in each trace, each a link to the trace at that op", async () => {
    const { page } = await show("/runs/1/ops");
    const links = page.findAll('figure a[href^="/traces/"]');
    expect(links.map((link) => link.attributes("href"))).toEqual(
      STEPS.map((_, i) => `/traces/${i + 1}?tab=ops&node=${100 + i}`),
    );
    expect(links[4]!.attributes("aria-label")).toMatch(/^Step 50: 9\.00\sms, 1\.80× its median/);
    page.unmount();
  });

  it("shows another op when its row is chosen, and the traces in which it did not run", async () => {
    const { page, router } = await show("/runs/1/ops");
    await page.findAll('[role="row"]')[2]!.trigger("click");
    await flushPromises();
    expect(router.currentRoute.value.query["op"]).toBe("SaveV2");
    const figure = page.find("figure");
    expect(figure.attributes("aria-label")).toBe("SaveV2 in each trace");
    expect(figure.findAll("a")).toHaveLength(1);
    expect(figure.text()).toContain("Step 10: did not run");
    page.unmount();
  });

  it("cuts a bar that goes far beyond the median, and says so", async () => {
    const spiky = op("MatMul", [1e6, 1e6, null, 2e7, 1e6], 1);
    for (const [row, heights, isSaid] of [
      [ops.rows[0]!, ["44%", "56%", "67%", "56%", "100%"], false],
      [spiky, ["25%", "25%", "100% cut", "25%"], true],
    ] as const) {
      const { page } = await show("/runs/1/ops", { ...ops, rows: [row] });
      const bars = page.findAll<HTMLElement>("figure .fill").map(({ element }) => {
        const percent = `${Math.round(parseFloat(element.style.height))}%`;
        return element.classList.contains("cut") ? `${percent} cut` : percent;
      });
      expect(bars).toEqual(heights);
      expect(page.find("figcaption").text().includes("go beyond 4 times the median")).toBe(isSaid);
      page.unmount();
    }
  });

  it("keeps its order in the URL", async () => {
    const { page, router } = await show("/runs/1/ops?sort=mean");
    const first = (): string => page.findAll('[role="row"]')[1]!.text();
    expect(first()).toContain("SaveV2");
    const heads = page.findAll('[role="columnheader"]');
    expect(heads.map((head) => head.attributes("aria-sort"))).toContain("ascending");
    await heads
      .find((head) => head.text().startsWith("Longest"))!
      .find("button")
      .trigger("click");
    await flushPromises();
    expect(router.currentRoute.value.query["sort"]).toBe("-longest");
    expect(first()).toContain("MatMul");
    page.unmount();
  });

  it("says so if there is no such run", async () => {
    const { page } = await show("/runs/77/ops");
    expect(page.text()).toContain("There is no such run");
    page.unmount();
  });
});
