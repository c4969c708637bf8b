/** The input pipelines, over a made-up session. */
import { flushPromises, mount, type VueWrapper } from "@vue/test-utils";
import { describe, expect, it } from "vitest";
import { FakeClient, fakeRun, fakeState } from "../../dev/fake";
import { fakePipelines } from "../../dev/pipelines";
import type { InputPipelines } from "@/client/messages";
import { createSession, sessionKey } from "@/state/session";
import PipelinesCard from "./PipelinesCard.vue";

async function show(pipelines: InputPipelines): Promise<VueWrapper> {
  const client = new FakeClient(fakeState({ runs: [fakeRun(1)] }));
  client.pipelines = pipelines;
  const card = mount(PipelinesCard, { global: { provide: { [sessionKey as symbol]: createSession(client) } } });
  await flushPromises();
  return card;
}

describe("the input pipelines", () => {
  it("show the tree with the limiting stage marked, its setting, and what a change predicts", async () => {
    const card = await show(fakePipelines());
    expect(card.find("p").text()).toContain("limits it to 50 batches/s. Set map(..., num_parallel_calls=");
    expect(card.find("p").text()).toContain("At most 190 batches/s then.");
    const rows = card.findAll("tbody tr").map((row) => row.text());
    expect(rows).toHaveLength(3);
    expect(card.findAll(".limiting").map((row) => row.text())).toEqual([rows[1]]);
    expect(rows[1]).toContain("MapAndBatch(decode)");
    expect(rows[1]).toContain("1 of 4");
    expect(rows[0]).toContain("0 of 2");
  });

  it("mark no stage if none is known to limit, and say why iterators were not examined", async () => {
    const unknown = fakePipelines(
      { stages: [], rate: null, wait: null, predicted_rate: null },
      "This TensorFlow is older.",
    );
    const card = await show(unknown);
    expect(card.find(".limiting").exists()).toBe(false);
    expect(card.text()).not.toContain("At most");
    expect(card.text()).not.toContain("waited for");
    expect(card.text()).toContain("This TensorFlow is older.");
  });

  it("are not shown if no pipeline was seen", async () => {
    expect((await show({ pipelines: [], text: "" })).find("section").exists()).toBe(false);
  });
});
