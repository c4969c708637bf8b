import { describe, expect, it } from "vitest";
import type { ComputingOpRow } from "@/client/messages";
import { byteRate, computedColumns, flopRate, intensity } from "./computedColumns";

const ROW = {
  total_ns: 2_000,
  device_ns: 0,
  flops: 4_000_000,
  flops_unknown: 0,
  bytes: 1_000_000,
  bytes_unknown: 0,
} as ComputingOpRow;

const texts = (row: ComputingOpRow): (string | undefined)[] =>
  computedColumns.map((column) => column.text?.(row).replaceAll("\u202f", " "));

describe("what ops compute", () => {
  it("is rated by the total, and on a GPU by the kernels' time", () => {
    expect([flopRate(ROW), byteRate(ROW), intensity(ROW)]).toEqual([2e12, 5e11, 4]);
    expect(flopRate({ ...ROW, device_ns: 1_000 })).toBe(4e12);
    expect(texts(ROW)).toEqual(["4.00 MFLOP", "2.00 TFLOP/s", "1.00 MB", "500 GB/s", "4.00"]);
  });

  it("is unknown, not 0, if nothing is known of it", () => {
    const row = { ...ROW, flops: null, flops_unknown: 3, bytes: null, bytes_unknown: 3 };
    expect(texts(row)).toEqual(Array(5).fill("unknown"));
  });

  it("is at least the sum of what is known, and has no rate", () => {
    const row = { ...ROW, flops_unknown: 1, bytes_unknown: 2 };
    expect(texts(row)).toEqual(["\u2265 4.00 MFLOP", "unknown", "\u2265 1.00 MB", "unknown", "unknown"]);
  });

  it("is 0 for ops that are not matrix ops, and for ops that move nothing", () => {
    expect(texts({ ...ROW, flops: 0 })).toEqual(["0", "0", "1.00 MB", "500 GB/s", "0"]);
    expect(texts({ ...ROW, flops: 0, bytes: 0 })).toEqual(["0", "0", "0", "0", "unknown"]);
  });
});
