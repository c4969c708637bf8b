import { describe, expect, it } from "vitest";
import { fakeTrace } from "../../dev/fake";
import { factsOf } from "./facts";

const model = { durationNs: 3.12e6, nodes: 8009 };
/** Return the facts with plain spaces before units. */
function facts(...parameters: Parameters<typeof factsOf>): string {
  return factsOf(...parameters).replaceAll("\u202f", " ");
}

describe("a trace in one line", () => {
  it("has the step, its time and the usual one, and the size", () => {
    const record = fakeTrace(1, { step: 1200, duration_s: 0.02, median_s: 0.01, nodes: 1609, devices: ["/host:CPU"] });
    expect(facts(record, model)).toBe("Step 1,200: 20.0 ms traced · usually 10.0 ms · 1,609 nodes · CPU");
  });

  it("leaves out a step number and a time that are not known", () => {
    const record = fakeTrace(1, { step: null, duration_s: null, median_s: null, nodes: 8009, devices: ["CPU", "GPU"] });
    expect(facts(record, model)).toBe("3.12 ms from the first op to the last · 8,009 nodes · 2 devices");
    expect(facts(record, null)).toBe("8,009 nodes · 2 devices");
  });

  it("takes the number of nodes from the model while the record has none", () => {
    const record = fakeTrace(1, { step: 3, duration_s: null, median_s: null, nodes: null, devices: [] });
    expect(facts(record, model)).toContain("8,009 nodes");
    expect(facts(record, null)).toBe("Step 3");
    expect(facts(record, { durationNs: 0, nodes: 0 })).toContain("0 nodes");
  });

  it("works without a record", () => {
    expect(facts(null, model)).toBe("3.12 ms from the first op to the last · 8,009 nodes");
    expect(facts(null, null)).toBe("");
  });
});
