import { describe, expect, it } from "vitest";
import { Shade } from "./colours";
import { modelOf } from "../../dev/timeline";
import { Kind } from "./model";
import { filtering, NO_FILTERS, shades, type Filters } from "./shading";

const { HIDDEN, DIM, NORMAL } = Shade;
const model = modelOf(
  {
    device: "/device:CPU:0",
    rows: [
      [
        { start: 0, duration: 100, name: "dense/MatMul", op: "MatMul", critical: true },
        { start: 200, duration: 1, name: "dense_1/MatMul", op: "MatMul" },
      ],
    ],
  },
  {
    device: "/device:GPU:0",
    rows: [
      [
        { start: 0, duration: 50, name: "dense", op: "RecvTensor", kind: Kind.COMMUNICATION },
        { start: 60, duration: 50, name: "copy", op: "MemcpyHtoD", kind: Kind.COPY },
      ],
    ],
  },
);
const shaded = (
  filters: Partial<Filters>,
  ...rest: [highlight?: "communication" | "copies" | "critical" | "idle", matches?: Uint8Array]
): number[] => [...shades(model, { ...NO_FILTERS, ...filters }, rest[0] ?? "none", rest[1] ?? null)];

describe("shades", () => {
  it("shows everything without filters", () => {
    expect(filtering(NO_FILTERS)).toBe(false);
    expect(shaded({})).toEqual([NORMAL, NORMAL, NORMAL, NORMAL]);
  });

  it("hides by device, op type, scope and duration", () => {
    expect(shaded({ devices: ["/device:GPU:0"] })).toEqual([HIDDEN, HIDDEN, NORMAL, NORMAL]);
    expect(shaded({ ops: ["MatMul"] })).toEqual([NORMAL, NORMAL, HIDDEN, HIDDEN]);
    expect(shaded({ scope: "dense" })).toEqual([NORMAL, HIDDEN, NORMAL, HIDDEN]);
    expect(shaded({ scope: "dense/" })).toEqual([NORMAL, HIDDEN, NORMAL, HIDDEN]);
    expect(shaded({ leastNs: 50 })).toEqual([NORMAL, HIDDEN, NORMAL, NORMAL]);
    expect(shaded({ ops: ["MatMul"], leastNs: 50 })).toEqual([NORMAL, HIDDEN, HIDDEN, HIDDEN]);
  });

  it("dims slices that a highlight or a search does not select", () => {
    expect(shaded({}, "communication")).toEqual([DIM, DIM, NORMAL, DIM]);
    expect(shaded({}, "copies")).toEqual([DIM, DIM, DIM, NORMAL]);
    expect(shaded({}, "critical")).toEqual([NORMAL, DIM, DIM, DIM]);
    expect(shaded({}, "idle")).toEqual([DIM, DIM, DIM, DIM]);
    expect(shaded({}, undefined, Uint8Array.of(0, 1, 1, 0))).toEqual([DIM, NORMAL, NORMAL, DIM]);
    expect(shaded({ leastNs: 50 }, "communication", Uint8Array.of(1, 1, 1, 1))).toEqual([DIM, HIDDEN, NORMAL, DIM]);
  });
});
