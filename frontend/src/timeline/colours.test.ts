import { describe, expect, it } from "vitest";
import { contrast, css, LEVELS, luminance, mix, Palette, slotColour, slotOf, SLOTS, THEMES, type Rgb } from "./colours";
import { Kind, KIND_NAMES } from "./model";

const OPS = ["MatMul", "Conv2D", "Relu", "AddV2", "MyOwnOp", "Sum", "Transpose", ""];
const SCHEMES = ["light", "dark"] as const;

describe("colours", () => {
  it("give an op type always the same colour, and each kind its own hue", () => {
    // literal slots: another order of the palette would change the colour of every op
    expect(["MatMul", "Conv2D", "SomeOp", "Sum", "Transpose"].map((op) => slotOf(op, Kind.COMPUTE))).toEqual([
      0, 1, 24, 12, 18,
    ]);
    expect(slotOf("MatMul", Kind.COMMUNICATION)).toBe(slotOf("RecvTensor", Kind.COMMUNICATION));
    const kinds = KIND_NAMES.map((_, kind) => slotOf("MatMul", kind));
    expect(new Set(kinds).size).toBe(KIND_NAMES.length);
  });

  it("differ between ops that are beside each other, and between any two slots", () => {
    const ops = [
      "MatMul",
      "Sum",
      "Relu",
      "ReluGrad",
      "Mul",
      "AddV2",
      "ReadVariableOp",
      "ResourceApplyAdam",
      "Conv2D",
      "Const",
      "Identity",
      "RandomUniform",
    ];
    expect(new Set(ops.map((op) => slotOf(op, Kind.COMPUTE))).size).toBe(ops.length);
    for (const scheme of SCHEMES) {
      const colours = Array.from({ length: SLOTS - KIND_NAMES.length }, (_, slot) => slotColour(slot, scheme));
      colours.forEach((colour, i) => {
        for (const other of colours.slice(0, i)) expect(apart([...colour], [...other])).toBeGreaterThan(16);
      });
    }
  });

  it("are those of the op that a fused or rewritten op stands for", () => {
    for (const [op, kind] of [
      ["_FusedMatMul", "MatMul"],
      ["_MklMatMul", "MatMul"],
      ["_MklNativeFusedMatMul", "MatMul"],
      ["_MklFusedBatchNormV3", "FusedBatchNormV3"],
      ["_MklNativeConv2DBackpropFilter", "Conv2DBackpropFilter"],
      ["_FusedConv2D", "Conv2D"],
      ["_MklSoftmax", "Softmax"],
      ["AddV2", "Add"],
      ["ResourceApplyAdam", "ResourceApplyKerasMomentum"],
    ] as const) {
      expect(slotOf(op, Kind.COMPUTE), op).toBe(slotOf(kind, Kind.COMPUTE));
    }
  });

  it("have enough contrast: text on each slot, slots on the lane", () => {
    for (const scheme of SCHEMES) {
      const { text } = new Palette(THEMES[scheme]);
      for (let slot = 0; slot < SLOTS; slot++) {
        const colour = slotColour(slot, scheme);
        const ink: Rgb = text[slot] === css([255, 255, 255]) ? [255, 255, 255] : [16, 22, 32];
        expect(contrast(ink, colour), `text on slot ${slot}, ${scheme}`).toBeGreaterThan(4.3);
        expect(contrast(colour, THEMES[scheme].lane), `slot ${slot}, ${scheme}`).toBeGreaterThan(1.25);
      }
    }
  });

  /** Machado, Oliveira and Fernandes 2009, severity 1: how a protan and a deutan eye see linear RGB. */
  const EYES: Record<string, number[][]> = {
    protan: [
      [0.152286, 1.052583, -0.204868],
      [0.114503, 0.786281, 0.099216],
      [-0.003882, -0.048116, 1.051998],
    ],
    deutan: [
      [0.367322, 0.860646, -0.227968],
      [0.280085, 0.672501, 0.047413],
      [-0.01182, 0.04294, 0.968881],
    ],
  };
  const seen = (rgb: Rgb, eye: number[][]): number[] =>
    eye.map((row) => row.reduce((sum, w, i) => sum + w * rgb[i], 0));
  const apart = (a: number[], b: number[]): number => Math.hypot(...a.map((v, i) => v - b[i]));

  it("keep communication, copies and computing apart to eyes that do not tell red from green", () => {
    const compute = OPS.map((op) => slotOf(op, Kind.COMPUTE));
    for (const scheme of SCHEMES) {
      for (const [name, eye] of Object.entries(EYES)) {
        const communication = seen(slotColour(slotOf("", Kind.COMMUNICATION), scheme), eye);
        const copy = seen(slotColour(slotOf("", Kind.COPY), scheme), eye);
        expect(apart(communication, copy), `${scheme} ${name}`).toBeGreaterThan(40);
        for (const slot of compute) {
          expect(
            apart(communication, seen(slotColour(slot, scheme), eye)),
            `${scheme} ${name} ${slot}`,
          ).toBeGreaterThan(40);
        }
      }
    }
  });

  it("are fainter where a slice covers less of a pixel, and when dimmed", () => {
    for (const scheme of SCHEMES) {
      const theme = THEMES[scheme];
      const { pixels } = new Palette(theme);
      const rgb = (pixel: number): Rgb => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
      const distance = (pixel: number): number => Math.abs(luminance(rgb(pixel)) - luminance(theme.background));
      const slot = slotOf("MatMul", Kind.COMPUTE);
      const full = pixels[(slot * 2 + 1) * LEVELS + LEVELS - 1];
      expect(distance(pixels[(slot * 2 + 1) * LEVELS])).toBeLessThan(distance(full));
      expect(distance(pixels[slot * 2 * LEVELS + LEVELS - 1])).toBeLessThan(distance(full));
    }
  });

  it("mix in shares", () => {
    expect(mix([0, 0, 0], [100, 200, 50], 0.5)).toEqual([50, 100, 25]);
  });
});
