/** What the tab of the critical path says about the source of its dependencies. */
import { flushPromises, mount } from "@vue/test-utils";
import { describe, expect, it } from "vitest";
import { FakeClient } from "../../../dev/fake";
import type { CriticalPath } from "@/client/messages";
import { createSession, sessionKey } from "@/state/session";
import CriticalPathTab from "./CriticalPathTab.vue";

const path: CriticalPath = {
  steps: [],
  left_out: 0,
  length_ns: 1e6,
  busy_ns: 1e6,
  by_op: [],
  edges: "none",
  slack_ns: null,
  findings: [],
};

async function pageText(edges: CriticalPath["edges"]): Promise<string> {
  const client = Object.assign(new FakeClient(), { analysis: () => Promise.resolve({ ...path, edges }) });
  const page = mount(CriticalPathTab, {
    props: { trace: 1, selected: null },
    global: { provide: { [sessionKey as symbol]: createSession(client) } },
  });
  await flushPromises();
  return page.text();
}

describe("the critical path", () => {
  it("says whether the trace records dependencies", async () => {
    expect(await pageText("none")).toContain("This trace records no dependencies.");
    expect(await pageText("labels")).toContain("Dependencies come from the ops' labels");
  });
});
