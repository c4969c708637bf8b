/** Where the time goes, over a made-up session. */
import { flushPromises, mount, type VueWrapper } from "@vue/test-utils";
import { createMemoryHistory, createRouter } from "vue-router";
import { afterEach, describe, expect, it, vi } from "vitest";
import { FakeClient, fakeRun, fakeSession, fakeState } from "../../dev/fake";
import { fakeLedger } from "../../dev/ledger";
import type { Ledger } from "@/client/messages";
import { createSession, sessionKey } from "@/state/session";
import LedgerCard from "./LedgerCard.vue";

async function show(
  ledger: Ledger,
  client = new FakeClient(fakeState({ runs: [fakeRun(1), fakeRun(3)] })),
): Promise<VueWrapper> {
  client.ledger = ledger;
  const blank = { render: () => null };
  const router = createRouter({
    history: createMemoryHistory(),
    routes: [
      { path: "/", component: blank },
      { path: "/runs/:id", name: "run", component: blank },
    ],
  });
  const card = mount(LedgerCard, {
    global: { plugins: [router], provide: { [sessionKey as symbol]: createSession(client) } },
  });
  await flushPromises();
  return card;
}

afterEach(() => void vi.useRealTimers());

describe("where the time goes", () => {
  it("shows the last figures soon after the script's end, although the server has them later", async () => {
    vi.useFakeTimers();
    const client = new FakeClient(fakeState());
    const card = await show(fakeLedger(), client);
    const whole = (): string => card.find(".head .muted").text();
    client.change({ session: fakeSession({ ended_at: 5, active: false }) });
    await vi.advanceTimersByTimeAsync(600);
    expect(whole()).toMatch(/^100\ss/);
    client.ledger = fakeLedger({ duration_s: 101 });
    client.change({ session: fakeSession({ ended_at: 5, active: false }) });
    await vi.advanceTimersByTimeAsync(600);
    expect(whole()).toMatch(/^101\ss/);
    client.ledger = fakeLedger({ duration_s: 102 });
    client.change({ runs: [fakeRun(1, { steps: 9 })] }); // a slow step among the last ones was found late
    await vi.advanceTimersByTimeAsync(600);
    expect(whole()).toMatch(/^102\ss/);
    card.unmount();
  });

  it("links its advice to the slow steps of the run that lost most time by them", async () => {
    const item = { name: "python", duration_s: 3, times: 1, run_id: 1 };
    const items = [item, { ...item, run_id: 3, duration_s: 2 }, { ...item, run_id: 3, duration_s: 2 }];
    const slow = { ...fakeLedger().parts[0]!, kind: "slow" as const, items };
    const advice = "See the causes of the slow steps.";
    const link = (await show(fakeLedger({ parts: [slow], largest: "slow", advice }))).find(".win a");
    expect(`${link.text()} ${link.attributes("href")}`).toBe(`${advice} /runs/3#slow-steps`);
    const unknown = { ...slow, items: [{ ...item, run_id: 77 }] };
    const card = await show(fakeLedger({ parts: [unknown], largest: "slow", advice }));
    expect(card.find(".win a").exists()).toBe(false);
    expect(card.find(".win").text()).toContain(advice);
  });

  it("shows parts that fill the bar, what to win most by first, and links to known runs", async () => {
    const card = await show(fakeLedger());
    const widths = card.findAll(".bar span").map((span) => parseFloat((span.element as HTMLElement).style.width));
    expect(widths.reduce((sum, width) => sum + width, 0)).toBeCloseTo(100, 9);
    expect(card.find(".win").text()).toContain("Waiting for input: 30 s, 30% of the wall time. Add prefetch");
    expect(card.find(".largest").text()).toContain("30.0%");
    const links = card.findAll("a").map((link) => `${link.text()} ${link.attributes("href")}`);
    expect(links).toEqual(["train_op /runs/1", "load_batch (train.py:88) /runs/1"]);
  });

  it("shows a little time as little, not as zero", async () => {
    const parts = fakeLedger().parts.map((part) => ({ ...part, duration_s: 0.004, permille: 0 }));
    const numbers = (await show(fakeLedger({ parts }))).findAll(".number").map((number) => number.text());
    expect(numbers.filter((text) => text === "<0.1%")).toHaveLength(parts.length);
  });

  it("is not shown if nothing is known", async () => {
    expect((await show(fakeLedger({ parts: [] }))).find("section").exists()).toBe(false);
  });
});
