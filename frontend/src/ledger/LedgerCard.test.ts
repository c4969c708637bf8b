/** Where the time goes, over a made-up session. */
import { flushPromises, mount, type VueWrapper } from "@vue/test-utils";
import { createMemoryHistory, createRouter } from "vue-router";
import { describe, expect, it } from "vitest";
import { FakeClient, fakeRun, fakeState } from "../../dev/fake";
import { fakeLedger } from "../../dev/ledger";
import type { Ledger } from "@/client/messages";
import { createSession, sessionKey } from "@/state/session";
import LedgerCard from "./LedgerCard.vue";

async function show(ledger: Ledger): Promise<VueWrapper> {
  const client = new FakeClient(fakeState({ runs: [fakeRun(1)] }));
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

describe("where the time goes", () => {
  it("shows parts that fill the bar, the largest to win first, and leads to the runs that it knows", async () => {
    const card = await show(fakeLedger());
    const widths = card.findAll(".bar span").map((span) => parseFloat((span.element as HTMLElement).style.width));
    expect(widths.reduce((sum, width) => sum + width, 0)).toBeCloseTo(100, 9);
    expect(card.find(".win").text()).toContain("Waiting for input: 30 s, 30% of the wall time. Add prefetch");
    expect(card.find(".largest").text()).toContain("30.0%");
    const links = card.findAll("a").map((link) => `${link.text()} ${link.attributes("href")}`);
    expect(links).toEqual(["train_op /runs/1", "load_batch (train.py:88) /runs/1"]);
  });

  it("says of a little time that it is little, not that it is nothing", async () => {
    const parts = fakeLedger().parts.map((part) => ({ ...part, duration_s: 0.004, permille: 0 }));
    const numbers = (await show(fakeLedger({ parts }))).findAll(".number").map((number) => number.text());
    expect(numbers.filter((text) => text === "<0.1%")).toHaveLength(parts.length);
  });

  it("is not there where nothing is known", async () => {
    expect((await show(fakeLedger({ parts: [] }))).find("section").exists()).toBe(false);
  });
});
