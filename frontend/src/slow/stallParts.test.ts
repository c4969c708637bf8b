import { describe, expect, it } from "vitest";
import { fakeStacks, fakeStall } from "../../dev/slow";
import { inOrder, merged, partLegend, partText } from "./stallParts";

describe("the parts of slow steps", () => {
  it("says what a part is, how long it took, and its usual time if that is known", () => {
    expect(partText({ kind: "lock", duration_s: 1.9, usual_s: null, what: "thread serializer" })).toMatch(
      /^waiting for Python's lock, thread serializer: 1\.90?\ss$/,
    );
    expect(partText({ kind: "python", duration_s: 0.2, usual_s: 0.1, what: "" })).toMatch(
      /^Python code: 200\sms, usually 100\sms$/,
    );
  });

  it("has the kinds of all steps in one order", () => {
    const first = fakeStall(1, { parts: [{ kind: "gc", duration_s: 1, usual_s: null, what: "" }] });
    expect(partLegend([first, fakeStall(2)]).map((each) => each.title)).toEqual([
      "TensorFlow, inside the step",
      "Python code",
      "garbage collection",
      "waiting for a disk",
    ]);
    expect(inOrder(fakeStall(2)).map((part) => part.kind)).toEqual(["tensorflow", "python", "disk"]);
  });
});

describe("stacks of several slow steps", () => {
  it("are one tree, in which equal lines called from equal lines are one", () => {
    const one = fakeStacks();
    const both = merged([one, one]);
    expect(both.parent).toEqual(one.parent);
    expect(both.seconds).toEqual(one.seconds.map((seconds) => 2 * seconds));
    expect(both.samples).toEqual(one.samples.map((samples) => 2 * samples));
    expect(both.samples_left_out).toBe(4);
    expect(one.samples_left_out).toBe(2);
  });

  it("keep a line apart that is called from elsewhere", () => {
    const one = fakeStacks();
    const other = { ...one, parent: [-1, 0], frame: [6, 2], seconds: [0, 0.5], samples: [0, 5] };
    const both = merged([one, other]);
    expect(both.parent).toHaveLength(one.parent.length + 1);
    expect(both.seconds.reduce((sum, each) => sum + each, 0)).toBeCloseTo(0.82);
  });

  it("are empty without slow steps", () => {
    expect(merged([]).parent).toEqual([]);
  });
});
