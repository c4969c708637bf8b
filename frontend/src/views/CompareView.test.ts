/** What the comparison of two traces says, as a reader sees it. */
import { flushPromises, mount } from "@vue/test-utils";
import { createMemoryHistory, createRouter } from "vue-router";
import { describe, expect, it } from "vitest";
import { FakeClient } from "../../dev/fake";
import type { ComparedOp, Comparison } from "@/client/messages";
import { createSession, sessionKey } from "@/state/session";
import CompareView from "./CompareView.vue";

function op(key: string, status: ComparedOp["status"], statistic: string, delta_ns: number): ComparedOp {
  const [total_a_ns, total_b_ns] = [1e6, 1e6 + delta_ns];
  const rest = { count_a: 1, count_b: 1, share_a: 0.5, share_b: 0.5, node_a: 0, node_b: 0 };
  return { key, op: key, status, statistic, total_a_ns, total_b_ns, delta_ns, ...rest };
}

const budget = { device: "", title: "Whole step", parts_ns: {}, busy_ns: 0 };
const comparison: Comparison = {
  by: "type",
  rows: [
    op("MatMul", "changed", "separated in 5 of 5 and 6 of 6 traces", 5e5),
    op("Conv2D", "unknown", "the runs' traces overlap", 9e5),
    op("Add", "same", "the runs' traces overlap", 0),
  ],
  left_out: 0,
  step_a_ns: 2e6,
  step_b_ns: 3e6,
  budget_a: budget,
  budget_b: budget,
  summary: "The second step is 1 ms longer (2 ms to 3 ms).",
  traces: "Judged by 5 traces of A's run and 6 traces of B's.",
  step_times: "Recorded steps, step time (p25): 2 ms to 3 ms, +50.0% (+30.6% to +72.3%), too few sessions to tell.",
};

class Comparing extends FakeClient {
  constructor(private readonly message: Comparison) {
    super();
  }

  override answers(path: string): unknown {
    return path.startsWith("compare?") ? this.message : super.answers(path);
  }
}

async function show(message: Comparison): Promise<string> {
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [{ path: "/compare", name: "compare", component: CompareView }],
  });
  await router.push("/compare?a=1&b=2");
  const provide = { [sessionKey as symbol]: createSession(new Comparing(message)) };
  const global = { plugins: [router], provide, stubs: { CompareTimelines: true } };
  const page = mount(CompareView, { global, attachTo: document.body });
  await flushPromises();
  const text = page.text();
  page.unmount();
  return text;
}

describe("two traces beside each other", () => {
  it("says what the traces of both runs show, by how many, and what the recorded steps say", async () => {
    const text = await show(comparison);
    for (const said of [comparison.summary, comparison.traces, comparison.step_times]) expect(text).toContain(said);
    expect(text).toMatch(/MatMul.*changed.*separated in 5 of 5 and 6 of 6 traces/s);
  });

  it("calls a difference that may be chance not told apart", async () => {
    const text = await show(comparison);
    expect(text).toMatch(/Conv2D\s*not told apart/);
    expect(text).not.toContain("unknown");
  });

  it("says nothing of step times if there are none", async () => {
    expect(await show({ ...comparison, step_times: "" })).not.toContain("Recorded steps");
  });
});
