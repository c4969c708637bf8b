import { describe, expect, it } from "vitest";
import { messageOf } from "../../dev/timeline";
import { Kind, TimelineModel } from "@/timeline/model";
import { emptyTabs } from "./emptyTabs";

const floats = (values: Float32Array): Uint8Array => new Uint8Array(values.buffer);

describe("tabs that have nothing to show", () => {
  it("are known by the trace, each with its reason", () => {
    const model = new TimelineModel(messageOf([{ rows: [[{ start: 0, duration: 5 }]] }]));
    expect(Object.keys(emptyTabs(model, null)).sort()).toEqual(["communication", "cost", "scheduling"]);
    expect(emptyTabs(model, { series: [], missing: [] }).memory).toContain("no allocation");
    const finding = { code: "no_function_graph", severity: "info" as const, message: "", remedy: "" };
    const alone = messageOf([{ rows: [[{ start: 0, duration: 5 }]] }]);
    expect(emptyTabs(new TimelineModel({ ...alone, findings: [finding] }), null).graph).toContain("no dependencies");
  });

  it("are none if the trace has what they show", () => {
    const message = messageOf([{ rows: [[{ start: 0, duration: 5, kind: Kind.COMMUNICATION }]] }]);
    const delay = { dtype: "f4" as const, data: floats(Float32Array.of(3)) };
    expect(emptyTabs(new TimelineModel({ ...message, delay, has_cost_graph: true }), null)).toEqual({});
  });
});
