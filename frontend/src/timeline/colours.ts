/**
 * The colours of slices. Most op types have the same colour in every trace, and each kind except computing has its own colour.
 * Colours differ in lightness as well as in hue, so that people with red-green colour blindness can tell them apart.
 */
import { Kind, KIND_NAMES } from "./model";
import { familyOf } from "./opNames";

export type Scheme = "light" | "dark";

/** OKLCH: perceptual lightness 0..1, chroma, hue in degrees. */
type Lch = readonly [lightness: number, chroma: number, hue: number];

/**
 * Each colour differs as much as possible from all before it, also with red-green colour blindness, and none is near a colour of
 * KINDS. The first colours belong to the entries of RESERVED_FAMILIES; the other families share the rest, by their names.
 */
const COMPUTE: readonly Lch[] = [
  [0.66, 0.13, 250],
  [0.74, 0.12, 225],
  [0.58, 0.18, 285],
  [0.62, 0.18, 145],
  [0.6, 0.09, 185],
  [0.74, 0.18, 310],
  [0.76, 0.18, 145],
  [0.8, 0.12, 190],
  [0.48, 0.18, 260],
  [0.86, 0.18, 120],
  [0.72, 0.09, 325],
  [0.7, 0.12, 170],
  [0.88, 0.09, 325],
  [0.48, 0.12, 145],
  [0.86, 0.15, 160],
  [0.68, 0.09, 105],
  [0.5, 0.06, 290],
  [0.62, 0.09, 325],
  // shared by the other families
  [0.48, 0.18, 325],
  [0.84, 0.06, 105],
  [0.56, 0.12, 240],
  [0.76, 0.15, 110],
  [0.86, 0.06, 220],
  [0.48, 0.06, 195],
  [0.48, 0.18, 295],
  [0.56, 0.06, 105],
];

/** The colours of all kinds except computing. */
const KINDS: Record<number, Lch> = {
  [Kind.COMMUNICATION]: [0.68, 0.19, 45],
  [Kind.COPY]: [0.62, 0.2, 340],
  [Kind.LAUNCH]: [0.78, 0.05, 255],
  [Kind.SYNC]: [0.56, 0.07, 20],
  [Kind.INPUT]: [0.84, 0.16, 90],
  [Kind.CONTROL]: [0.72, 0.01, 260],
  [Kind.REPEAT]: [0.78, 0.015, 260],
  [Kind.OUTSIDE]: [0.86, 0.005, 260],
};

/** Families of ops (`familyOf`) that take most of the time of most traces. Each entry has a colour of its own. */
const RESERVED_FAMILIES: readonly (readonly string[])[] = [
  ["MatMul", "BatchMatMul", "Einsum"],
  ["Conv2D", "Conv3D", "DepthwiseConv2dNative"],
  ["Conv2DBackpropInput", "Conv3DBackpropInput", "DepthwiseConv2dNativeBackpropInput"],
  ["Conv2DBackpropFilter", "Conv3DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"],
  ["Mul"],
  ["BatchNorm", "BatchNormEx", "BatchNormGrad", "BatchNormGradEx"],
  ["Relu"],
  ["Add", "AddN"],
  ["ReadVariableOp"],
  ["BiasAdd", "BiasAddGrad"],
  ["MaxPool", "MaxPoolGrad", "AvgPool", "AvgPoolGrad"],
  ["ResourceApply"],
  ["Sum", "Mean"],
  ["ReluGrad"],
  ["VarHandleOp"],
  ["Reshape"],
  ["Const"],
  ["Identity"],
];
/** Family -> slot (index in COMPUTE). If a trace has several families of the same slot, the first of them keeps it. */
export const RESERVED_SLOT: ReadonlyMap<string, number> = new Map(
  RESERVED_FAMILIES.flatMap((families, slot) => families.map((family) => [family, slot] as const)),
);

/** The number of colours: the slots of COMPUTE come first, then one slot for each kind. */
export const SLOTS = COMPUTE.length + KIND_NAMES.length;
/** The number of levels for the share of a pixel's time that slices cover. */
export const LEVELS = 16;

export const COMPUTE_SLOTS: readonly number[] = COMPUTE.map((_, slot) => slot);
/** The slots that no entry of RESERVED_FAMILIES has. */
export const SHARED_SLOTS: readonly number[] = COMPUTE_SLOTS.slice(RESERVED_FAMILIES.length);

/** Return the slot of a family's entry in RESERVED_FAMILIES; undefined if it has none. */
export function reservedSlotOf(family: string): number | undefined {
  return RESERVED_SLOT.get(family);
}

/** Return the slot of an op type and a kind of slice. Within a trace, `OpColours` replaces slots that several families share. */
export function slotOf(op: string, kind: number): number {
  if (kind !== Kind.COMPUTE) return COMPUTE.length + kind;
  const family = familyOf(op);
  return reservedSlotOf(family) ?? SHARED_SLOTS[hash(family) % SHARED_SLOTS.length];
}

/** Return the FNV-1a hash, which is the same in every browser and every release. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return value >>> 0;
}

export type Rgb = readonly [number, number, number];

function oklch([lightness, chroma, hue]: Lch): Rgb {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    gamma(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    gamma(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    gamma(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

function gamma(linear: number): number {
  const value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * linear ** (1 / 2.4) - 0.055;
  return Math.round(255 * Math.min(1, Math.max(0, value)));
}

function slotLch(slot: number): Lch {
  return slot < COMPUTE.length ? COMPUTE[slot] : (KINDS[slot - COMPUTE.length] ?? COMPUTE[0]);
}

/** Return a slot's colour; in the dark scheme a little darker, so that a full screen of it does not glare. */
export function slotColour(slot: number, scheme: Scheme): Rgb {
  const [lightness, chroma, hue] = slotLch(slot);
  return oklch(scheme === "light" ? [lightness, chroma, hue] : [lightness * 0.9, chroma * 0.95, hue]);
}

export function css([r, g, b]: Rgb): string {
  return `rgb(${r}, ${g}, ${b})`;
}

export function pack([r, g, b]: Rgb): number {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

export function mix(from: Rgb, to: Rgb, share: number): Rgb {
  const blend = (i: 0 | 1 | 2): number => Math.round(from[i] + (to[i] - from[i]) * share);
  return [blend(0), blend(1), blend(2)];
}

/** WCAG relative luminance. */
export function luminance(rgb: Rgb): number {
  const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

const INK: Rgb = [16, 22, 32];
const PAPER: Rgb = [255, 255, 255];

/** The colours on and beside the slices: the design tokens of styles/tokens.css, in the form that drawing needs. */
export interface Theme {
  scheme: Scheme;
  background: Rgb;
  lane: Rgb;
  grid: Rgb;
  line: Rgb;
  text: string;
  muted: string;
  accent: string;
  range: string;
  idle: Rgb;
  inputArrow: string;
  consumerArrow: string;
}

export const THEMES: Record<Scheme, Theme> = {
  light: {
    scheme: "light",
    background: [255, 255, 255],
    lane: [242, 244, 247],
    grid: [234, 237, 242],
    line: [226, 229, 235],
    text: "#171a21",
    muted: "#667085",
    accent: "#2f5bea",
    range: "rgb(47 91 234 / 12%)",
    idle: [255, 214, 190],
    inputArrow: "#2f5bea",
    consumerArrow: "#c2410c",
  },
  dark: {
    scheme: "dark",
    background: [22, 25, 31],
    lane: [28, 32, 40],
    grid: [34, 38, 47],
    line: [39, 44, 54],
    text: "#e8eaf0",
    muted: "#8f98a8",
    accent: "#7c9cff",
    range: "rgb(124 156 255 / 18%)",
    idle: [92, 48, 26],
    inputArrow: "#7c9cff",
    consumerArrow: "#fb923c",
  },
};

/** Shades of a slice: hidden by a filter, dimmed by a search or a highlight, or normal. */
export const Shade = { HIDDEN: 0, DIM: 1, NORMAL: 2 } as const;

/** Precomputed pixels by slot, shade and coverage, and for each slot the text colour that can be read on it. */
export class Palette {
  /** [SLOTS * 2 * LEVELS] packed pixels; of each slot, the dimmed ones come first. */
  readonly pixels = new Uint32Array(SLOTS * 2 * LEVELS);
  /** [SLOTS * 2] packed pixels of the line that ends a slice. */
  readonly edges = new Uint32Array(SLOTS * 2);
  readonly text: string[] = [];

  constructor(readonly theme: Theme) {
    for (let slot = 0; slot < SLOTS; slot++) {
      const colour = slotColour(slot, theme.scheme);
      const dimmed = mix(theme.background, colour, theme.scheme === "light" ? 0.16 : 0.24);
      this.fill(slot, 0, dimmed);
      this.fill(slot, 1, colour);
      this.text.push(css(contrast(colour, INK) >= contrast(colour, PAPER) ? INK : PAPER));
    }
  }

  private fill(slot: number, lit: number, colour: Rgb): void {
    const { background } = this.theme;
    for (let level = 0; level < LEVELS; level++) {
      const share = 0.35 + (0.65 * level) / (LEVELS - 1);
      this.pixels[(slot * 2 + lit) * LEVELS + level] = pack(mix(background, colour, share));
    }
    this.edges[slot * 2 + lit] = pack(mix(background, colour, 0.45));
  }
}
