import { describe, expect, it } from "vitest";
import type { Layer, Layers } from "@/client/messages";
import { matcher } from "@/components/table";
import { layerTable, opsOf } from "./layers";

function layer(parent: number, name: string, own: number[], more: Partial<Layer> = {}): Layer {
  return { parent, name, kind: "layer", folded: 0, own, node: -1, ...more };
}

const ANSWER: Layers = {
  of: "time",
  phases: ["forward", "backward", "optimizer", "communication", "input", "variables"],
  layers: [
    layer(-1, "net", [1, 0, 0, 0, 0, 0]),
    layer(0, "dense", [10, 20, 5, 0, 0, 0]),
    layer(0, "(others)", [2, 0, 0, 0, 0, 0], { kind: "others", folded: 7 }),
    layer(-1, "in no layer", [0, 0, 0, 0, 0, 0], { kind: "none" }),
    layer(3, "Adam", [0, 0, 4, 0, 0, 0], { kind: "none" }),
    layer(3, "Cast", [3, 0, 0, 0, 0, 0], { kind: "none" }),
  ],
  total: 45,
  in_no_layer: 7,
  folded: 7,
  allocator: "",
  device: "",
  at_ns: 0,
  findings: [],
};
const { rows, phases, tree } = layerTable(ANSWER);

describe("the table of layers", () => {
  it("has paths, and sums that include the layers in each", () => {
    expect(rows.map((row) => row.path)).toEqual([
      "net",
      "net/dense",
      "net/(others: 7)",
      "in no layer",
      "in no layer/Adam",
      "in no layer/Cast",
    ]);
    expect(rows.map((row) => row.total)).toEqual([38, 35, 2, 7, 4, 3]);
    expect(rows[0]!.phases).toMatchObject({ forward: 13, backward: 20, optimizer: 5 });
    expect(rows[0]!.own).toBe(1);
    expect(tree.parent).toEqual([-1, 0, 0, -1, 3, 3]);
  });

  it("has columns for the phases that occur", () => {
    expect(phases).toEqual(["forward", "backward", "optimizer"]);
  });
});

describe("the ops of a layer", () => {
  const finds = (path: string, name: string): boolean => matcher(opsOf({ ...rows[1]!, path })!.rows)!(name);

  it.each([
    "net/dense/MatMul",
    "StatefulPartitionedCall/gradient_tape/net/dense/MatMul/MatMul_1",
    "gradients/net/dense_grad/MatMul",
    "gradients/net/dense/MatMul_grad/MatMul",
    "Adam/update_net/dense/kernel/ResourceApplyAdam",
    "net/body/_12/net/dense/MatMul",
    "net/body/_12/dense/MatMul",
  ])("are found by names like %s", (name) => {
    expect(finds("net/dense", name)).toBe(true);
  });

  it.each(["net/dense_1/MatMul", "net/block/dense/MatMul", "mynet/dense/MatMul", "net/densest"])(
    "do not include %s",
    (name) => {
      expect(finds("net/dense", name)).toBe(false);
    },
  );

  it("are found even if a layer's name has special characters", () => {
    expect(finds("a.b(c)*/d[1]", "a.b(c)*/d[1]/MatMul")).toBe(true);
  });

  it("that are in no layer are selected by op type or by optimizer", () => {
    expect(opsOf(rows[4]!)).toEqual({ by: "name", rows: "/(^|\\/)Adam(_\\d+)?\\//" });
    expect(opsOf(rows[5]!)).toEqual({ by: "type", rows: "/^Cast$/" });
    expect(opsOf(rows[2]!)).toBeNull();
    expect(opsOf(rows[3]!)).toBeNull();
  });
});
