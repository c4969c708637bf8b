/** The memory of the process, over a made-up session. */
import { flushPromises, mount, type VueWrapper } from "@vue/test-utils";
import { describe, expect, it } from "vitest";
import { FakeClient, fakeRun, fakeState } from "../../dev/fake";
import { fakeGrowth, fakeMemory } from "../../dev/memory";
import type { ProcessMemory } from "@/client/messages";
import { createSession, sessionKey } from "@/state/session";
import MemoryCard from "./MemoryCard.vue";

async function show(memory: ProcessMemory): Promise<VueWrapper> {
  const client = new FakeClient(fakeState({ runs: [fakeRun(1)] }));
  client.memory = memory;
  const card = mount(MemoryCard, { global: { provide: { [sessionKey as symbol]: createSession(client) } } });
  await flushPromises();
  return card;
}

describe("the memory of the process", () => {
  it("shows a proven growth with what grows, the advice, and what else grows", async () => {
    const card = await show(fakeMemory());
    expect(card.find("strong").text()).toContain("With it grow tensors (EagerTensor): 469 more");
    expect(card.find(".told").text()).toContain("Tensors are kept");
    expect(card.find("li").text()).toContain("Batch: 12 more");
    expect(card.find(".head").text().replace(/\s/g, " ")).toContain("554 MB at last, at most 554 MB.");
    expect(card.findAll("rect.growth")).toHaveLength(1);
  });

  it("shades each growth where it was", async () => {
    const growths = [fakeGrowth(), fakeGrowth({ since: 1_790_000_000, until: 1_790_000_018, is_growing: false })];
    const rects = (await show(fakeMemory({ growths }))).findAll("rect.growth");
    expect(rects[0]!.attributes("x")).toBe(String((60 / 180) * 1000));
    expect(rects[1]!.attributes("width")).toBe("100");
  });

  it("says that it does not grow only if that is known", async () => {
    expect((await show(fakeMemory({ growths: [], growth_rate: 0 }))).text()).toContain("It does not grow.");
    const short = (await show(fakeMemory({ growths: [], growth_rate: null }))).text();
    expect(short).toContain("Too short to tell whether it grows.");
    expect(short).not.toContain("It does not grow");
  });

  it("is not shown if nothing was read", async () => {
    const nothing = fakeMemory({ at: [], low: [], high: [], growths: [], growth_rate: null });
    expect((await show(nothing)).find("section").exists()).toBe(false);
    expect((await show({ ...nothing, text: "Linux alone tells." })).text()).toContain("Linux alone tells.");
  });
});
