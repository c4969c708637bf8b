import { describe, expect, it } from "vitest";
import { StringColumn, typedArray } from "./columns";
import type { Column } from "./messages";

function column(dtype: Column["dtype"], array: { buffer: ArrayBufferLike }, offset = 0): Column {
  const source = new Uint8Array(array.buffer);
  const data = new Uint8Array(new ArrayBuffer(source.length + offset), offset, source.length);
  data.set(source);
  return { dtype, data };
}

describe("typedArray", () => {
  it.each([
    ["u1", new Uint8Array([0, 255])],
    ["u2", new Uint16Array([0, 65_535])],
    ["u4", new Uint32Array([0, 4_294_967_295])],
    ["i1", new Int8Array([-128, 127])],
    ["i2", new Int16Array([-32_768, 32_767])],
    ["i4", new Int32Array([-1, 2_147_483_647])],
    ["f4", new Float32Array([-1.5, 2 ** 20])],
    ["f8", new Float64Array([1e-9, 2 ** 53])],
  ] as const)("reads %s", (dtype, values) => {
    expect(typedArray(column(dtype, values))).toEqual(values);
    expect(typedArray(column(dtype, values, 3))).toEqual(values);
  });

  it("copies nothing where the bytes are aligned", () => {
    const aligned = column("f8", new Float64Array([1, 2]), 8);
    expect(typedArray(aligned).buffer).toBe(aligned.data.buffer);
    const crooked = column("f8", new Float64Array([1, 2]), 4);
    expect(typedArray(crooked).buffer).not.toBe(crooked.data.buffer);
  });

  it("refuses a type that it does not know", () => {
    const odd = { dtype: "i8", data: new Uint8Array(8) } as unknown as Column;
    expect(() => typedArray(odd)).toThrow(/reload/);
  });
});

describe("StringColumn", () => {
  const data = new TextEncoder().encode("MatMulµRelu");
  const strings = new StringColumn({ data, offsets: column("u4", new Uint32Array([0, 6, 8, 8, 12])) });

  it("decodes what it is asked for", () => {
    expect(strings.length).toBe(4);
    expect(strings.at(1)).toBe("µ");
    expect(strings.at(1)).toBe("µ");
    expect(strings.all()).toEqual(["MatMul", "µ", "", "Relu"]);
  });
});
