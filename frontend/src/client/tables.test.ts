import { describe, expect, it } from "vitest";
import { Details } from "./details";
import type { Column, NodeDetails, Strings } from "./messages";
import { memoryUse, opStatistics } from "./tables";

const empty: Column = { dtype: "i4", data: new Uint8Array() };

function column(...values: number[]): Column {
  return { dtype: "i4", data: new Uint8Array(new Int32Array(values).buffer) };
}

function strings(...texts: string[]): Strings {
  const offsets = texts.reduce<number[]>((ends, text) => [...ends, (ends.at(-1) ?? 0) + text.length], [0]);
  return { data: new TextEncoder().encode(texts.join("")), offsets: column(...offsets) };
}

/** Two nodes, the second with an output; whatever is 0 throughout is empty. */
const details = new Details({
  devices: ["cpu"],
  names: strings("a", "b/c"),
  ops: strings("MatMul", "Add"),
  labels: strings(),
  name: column(0, 1),
  op: column(0, 1),
  device: empty,
  output_slot: empty,
  output_bytes: column(64),
  output_dtype: empty,
  output_shape: empty,
  output_allocator: empty,
  dtypes: ["float32"],
  shapes: ["[16]"],
  allocators: ["BFC"],
} as unknown as NodeDetails);

const one = {
  key: column(1),
  op: column(-1),
  device: column(-1),
  count: column(2),
  total_ns: column(30),
  self_ns: column(20),
  max_ns: column(25),
  device_ns: column(10),
  delay_ns: column(5),
  node: column(1),
};

describe("opStatistics", () => {
  const whole = { by: "name", left_out: 3, total_ns: 60, findings: [] } as const;

  it("makes rows of columns", () => {
    const { rows } = opStatistics({ ...whole, findings: [], rows: { keys: null, ...one } }, details);
    expect(rows).toEqual([
      {
        key: "b/c",
        op: "",
        device: "",
        count: 2,
        total_ns: 30,
        self_ns: 20,
        mean_ns: 15,
        max_ns: 25,
        share: 0.5,
        host_ns: 20,
        device_ns: 10,
        delay_ns: 5,
        node: 1,
      },
    ]);
  });

  it("takes keys of their own", () => {
    const own = { keys: strings("x", "scope"), ...one };
    expect(opStatistics({ ...whole, findings: [], rows: own }, details).rows[0]?.key).toBe("scope");
  });

  it("leaves rows as they are", () => {
    expect(opStatistics({ ...whole, findings: [], rows: [] }, details)).toEqual({ ...whole, rows: [] });
  });
});

describe("memoryUse", () => {
  it("says of a tensor what its node and its output say", () => {
    const tensors = {
      node: column(1),
      output: column(0),
      bytes: column(64),
      alloc_ns: column(7),
      free_ns: column(9),
      last_consumer: column(-1),
    };
    const points = { time_ns: column(0, 7), bytes: column(0, 64) };
    const use = memoryUse(
      {
        curves: [{ allocator: "BFC", device: "cpu", peak_bytes: 64, peak_ns: 7, ...points }],
        tensors,
        at_peak: { ...tensors, node: column() },
        tensors_total: 1,
        temporary: [],
        persistent_bytes: 0,
        findings: [],
      },
      details,
    );
    expect(use.curves[0]).toMatchObject({ time_ns: [0, 7], bytes: [0, 64] });
    expect(use.at_peak).toEqual([]);
    expect(use.tensors).toEqual([
      {
        node: 1,
        name: "b/c",
        op: "Add",
        device: "cpu",
        output: 0,
        allocator: "BFC",
        bytes: 64,
        shape: "[16]",
        dtype: "float32",
        alloc_ns: 7,
        free_ns: 9,
        last_consumer: -1,
      },
    ]);
  });
});
