import { describe, expect, it } from "vitest";
import type { Column, NodeTable, Strings } from "./messages";
import { Nodes } from "./nodes";

function column(...values: number[]): Column {
  return { dtype: "i4", data: new Uint8Array(new Int32Array(values).buffer) };
}

function strings(...texts: string[]): Strings {
  const offsets = texts.reduce<number[]>((ends, text) => [...ends, (ends.at(-1) ?? 0) + text.length], [0]);
  return { data: new TextEncoder().encode(texts.join("")), offsets: column(...offsets) };
}

/** A chain of three nodes; the second has two outputs, the first has an input that did not run. */
const table: NodeTable = {
  nodes: 3,
  fields: {
    numbers: {
      start_ns: column(0, 5, 9),
      delay_ns: column(-(2 ** 31), 2, 3),
      slack_ns: { dtype: "f8", data: new Uint8Array(new Float64Array([NaN, 0.5, 1]).buffer) },
    },
    flags: { critical: { dtype: "u1", data: new Uint8Array([1, 0, 1]) } },
    texts: {
      name: { code: column(0, 1, 1), texts: strings("a", "b/c") },
      op: { code: column(0, 0, 0), texts: strings("Op") },
      device: { code: column(0, 0, 0), texts: strings("cpu") },
    },
  },
  links: { inputs: { offsets: column(0, 1, 2, 3), node: column(-1, 0, 1) } },
  not_run: strings("gone"),
  output_offsets: column(0, 0, 2, 2),
  outputs: {
    numbers: { slot: column(0, 1) },
    flags: {},
    texts: { shape: { code: column(0, 0), texts: strings("[16]") } },
  },
  input_offsets: column(0, 0, 1, 2),
  input: column(0, 1),
};

describe("Nodes", () => {
  const nodes = new Nodes(table);

  it("reads a node as a row of the columns", () => {
    expect(nodes.detail(1)).toEqual({
      node: 1,
      start_ns: 5,
      delay_ns: 2,
      slack_ns: 0.5,
      critical: false,
      name: "b/c",
      op: "Op",
      device: "cpu",
      inputs: [{ node: 0, name: "a", op: "Op", device: "cpu" }],
      outputs: [
        { slot: 0, shape: "[16]" },
        { slot: 1, shape: "[16]" },
      ],
      facts: [],
      hlo: "",
    });
  });

  it("reads unknown numbers as null, and inputs that did not run", () => {
    const detail = nodes.detail(0);
    expect([detail.delay_ns, detail.slack_ns, detail.critical, detail.outputs]).toEqual([null, null, true, []]);
    expect(detail.inputs).toEqual([{ node: -1, name: "gone", op: "", device: "" }]);
  });

  it("finds neighbours in both directions", () => {
    const graph = nodes.neighbourhood(1, 1);
    expect(graph.nodes.map(({ node }) => node)).toEqual([1, 0, 2]);
    expect(graph.edges).toEqual([
      [1, 0],
      [0, 2],
    ]);
    expect(nodes.neighbourhood(0, 1).nodes).toHaveLength(2);
    expect(nodes.neighbourhood(0, 2, 2).left_out).toBe(1);
  });

  it("throws for a number that is not a node's", () => {
    expect(() => nodes.detail(3)).toThrow(RangeError);
  });
});
