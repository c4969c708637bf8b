import { describe, expect, it } from "vitest";
import { labelOf } from "./opNames";

describe("a slice's label", () => {
  it("says what a fused op computes: its name is that of the activation alone", () => {
    expect(labelOf("net/conv2d_1/Relu", "_FusedConv2D")).toBe("net/conv2d_1/Conv2D + Relu");
    expect(labelOf("net/conv2d_1/Relu", "_MklNativeFusedConv2D")).toBe("net/conv2d_1/Conv2D + Relu");
    expect(labelOf("BiasAdd", "_FusedMatMul")).toBe("MatMul + BiasAdd");
    expect(labelOf("net/Relu6", "_MklFusedDepthwiseConv2dNative")).toBe("net/DepthwiseConv2dNative + Relu6");
  });

  it("is the name of any other op, and of a fused op whose name says what it computes", () => {
    for (const [name, op] of [
      ["net/Relu", "Relu"],
      ["net/MatMul_1", "_FusedMatMul"],
      ["bn/FusedBatchNormV3", "FusedBatchNormV3"],
      ["conv/Conv2D", "_MklNativeConv2D"],
    ] as const) {
      expect(labelOf(name, op)).toBe(name);
    }
  });
});
