import { describe, expect, it } from "vitest";
import { modelOf } from "../../dev/timeline";
import { slotOf } from "./colours";
import { legendOf } from "./legend";
import { Kind, type TimelineModel } from "./model";
import { coloursOf, OpColours } from "./resolveColourClashes";

/** Return a trace whose ops take the given times, one after the other. */
function trace(times: Record<string, number>): TimelineModel {
  let start = 0;
  const row = Object.entries(times).map(([op, duration]) => ({ op, duration, start: (start += 1000) }));
  return modelOf({ rows: [row] });
}

const JAX = { input_transpose_fusion: 530, "cudnn-conv": 440, loop_transpose_fusion: 7 };
const BERT = {
  Cast: 280,
  RandomUniform: 140,
  GreaterEqual: 95,
  Mul: 63,
  BroadcastTo: 1,
  Reciprocal: 1,
  StridedSlice: 1,
};
const compute = (model: TimelineModel, ops: readonly string[]): number[] =>
  ops.map((op) => coloursOf(model).slotOf(op, Kind.COMPUTE));

describe("the colours of a trace", () => {
  it("are not shared by kernels that are beside each other", () => {
    for (const times of [JAX, BERT, { MaxPool: 14, MaxPoolGrad: 68, BatchMatMul: 3, MatMul: 2 }]) {
      const ops = Object.keys(times);
      expect(new Set(ops.map((op) => slotOf(op, Kind.COMPUTE))).size).toBeLessThan(ops.length);
      expect(new Set(compute(trace(times), ops)).size).toBe(ops.length);
    }
  });

  it("stay with the main op of those that have the same", () => {
    const model = trace({ BatchMatMul: 9, MatMul: 1, MaxPoolGrad: 5, MaxPool: 1 });
    expect(compute(model, ["MatMul", "MaxPool"])).toEqual(["MatMul", "MaxPool"].map((op) => slotOf(op, Kind.COMPUTE)));
  });

  it("are the same in the legend and on the slices", () => {
    const model = trace(BERT);
    const colours = coloursOf(model);
    const drawn = colours.slotsOf(model);
    for (const entry of legendOf(model, colours, 24)) {
      expect([...drawn].filter((_, slice) => model.opOf(slice) === entry.op)).toEqual([entry.slot]);
    }
  });

  it("are the same in each trace of the same ops, whatever their times, and in two that are compared", () => {
    const [one, other] = [
      trace(JAX),
      trace({ loop_transpose_fusion: 900, "cudnn-conv": 2, input_transpose_fusion: 1 }),
    ];
    expect(compute(one, Object.keys(JAX))).toEqual(compute(other, Object.keys(JAX)));
    const both = new OpColours([one, trace(BERT)]);
    const ops = [...Object.keys(JAX), ...Object.keys(BERT)];
    expect(new Set(ops.map((op) => both.slotOf(op, Kind.COMPUTE))).size).toBe(ops.length);
  });

  it("of the ops with most time and of families with their own stay different if there are too many ops", () => {
    const many = Object.fromEntries(
      Array.from({ length: 60 }, (_, i) => [`Op${String.fromCharCode(65 + (i % 26))}${i}x`, 60 - i]),
    );
    const model = trace({ MatMul: 1, ...many });
    expect(compute(model, ["MatMul"])).toEqual([slotOf("MatMul", Kind.COMPUTE)]);
    expect(new Set(compute(model, ["MatMul", ...Object.keys(many).slice(0, 25)])).size).toBe(26);
  });

  it("of kinds other than computing are the kind's hue", () => {
    const model = modelOf({ rows: [[{ start: 0, duration: 5, op: "Send", kind: Kind.COMMUNICATION }]] });
    expect([...coloursOf(model).slotsOf(model)]).toEqual([slotOf("Send", Kind.COMMUNICATION)]);
  });

  it("of an op of several kinds are, in the legend, those of the kind with most time", () => {
    const row = [
      { start: 0, duration: 90, op: "Identity" },
      { start: 100, duration: 5, op: "Identity", kind: Kind.INPUT },
    ];
    const model = modelOf({ rows: [row] });
    expect(legendOf(model, coloursOf(model), 1)[0].slot).toBe(slotOf("Identity", Kind.COMPUTE));
    const gpu = [
      { start: 0, duration: 90, op: "Cast", kind: Kind.LAUNCH },
      { start: 100, duration: 50, op: "Cast" },
      { start: 200, duration: 9, op: "Send", kind: Kind.LAUNCH },
    ];
    const launched = modelOf({ rows: [gpu] });
    const slots = legendOf(launched, coloursOf(launched), 2).map((entry) => entry.slot);
    expect(slots).toEqual([slotOf("Cast", Kind.COMPUTE), slotOf("", Kind.LAUNCH)]);
  });
});
