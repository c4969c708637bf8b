/** The geometry of the roofline: points and lines on two logarithmic axes, FLOPs a byte and FLOPs a second. */
import type { Roof, RooflineRow, RoofSource } from "@/client/messages";

/** The size of the plot and its margins, in pixels. */
export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export interface Scale {
  /** Powers of ten at which the axes begin and end. */
  readonly x: readonly [number, number];
  readonly y: readonly [number, number];
  readonly frame: Frame;
}

export interface Point {
  readonly row: RooflineRow;
  readonly x: number;
  readonly y: number;
  readonly radius: number;
}

export interface Line {
  readonly source: RoofSource;
  readonly roof: Roof;
  readonly path: string;
  /** The place where its label ends. */
  readonly x: number;
  readonly y: number;
}

export const FRAME = { height: 340, left: 92, right: 14, top: 14, bottom: 40 } as const;

/** Radius of the largest point, and of the smallest that can be clicked. */
const MAX_RADIUS_PX = 16;
const MIN_RADIUS_PX = 3;
/** The x axis shows corners (where a rising line becomes flat) that are less than this many powers of ten beyond the points. */
const MAX_POWERS_BEYOND = 2;
/** Least distance between the labels of two lines. */
const LABEL_PX = 14;

/** Return the rows that can be plotted: matrix ops with known FLOPs and memory traffic. */
export function plotted(rows: readonly RooflineRow[]): RooflineRow[] {
  return rows.filter((row) => row.flops_per_s > 0 && row.intensity !== null && row.intensity > 0);
}

/** Return the powers of ten (exponents) around the values, at least one apart. */
function powers(values: readonly number[]): [number, number] {
  const logs = values.filter((value) => value > 0 && Number.isFinite(value)).map(Math.log10);
  if (!logs.length) return [0, 1];
  const low = Math.floor(logs.reduce((a, b) => Math.min(a, b)));
  return [low, Math.max(Math.ceil(logs.reduce((a, b) => Math.max(a, b)) + 0.05), low + 1)];
}

/** Return axes of whole powers of ten around all points and lines, and around the lines' corners if these are near. */
export function scaleOf(rows: readonly RooflineRow[], roofs: readonly Roof[], width: number): Scale {
  const flat = flatRoofs(rows, roofs);
  const intensities = rows.map((row) => row.intensity ?? 0);
  const [low, high] = powers(intensities);
  const corners = flat.map((roof) => roof.rate / (memoryOf(roof, roofs) ?? Infinity));
  const near = corners.filter((at) => at > 10 ** (low - MAX_POWERS_BEYOND) && at < 10 ** (high + MAX_POWERS_BEYOND));
  const rates = [...rows.map((row) => row.flops_per_s), ...flat.map((roof) => roof.rate)];
  return { x: powers([...intensities, ...near]), y: powers(rates), frame: { ...FRAME, width } };
}

/** Return the roofs of computation for the rows' number types. (These lines are flat; memory roofs rise.) */
function flatRoofs(rows: readonly RooflineRow[], roofs: readonly Roof[]): Roof[] {
  const used = new Set(rows.map((row) => row.dtype));
  return roofs.filter((roof) => roof.dtype && used.has(roof.dtype));
}

/** Return the rate of the memory roof with the same source, in bytes per second; null if there is none. */
function memoryOf(roof: Roof, roofs: readonly Roof[]): number | null {
  return roofs.find((one) => !one.dtype && one.source === roof.source)?.rate ?? null;
}

export function xOf({ x, frame }: Scale, intensity: number): number {
  return frame.left + ((Math.log10(intensity) - x[0]) / (x[1] - x[0])) * (frame.width - frame.left - frame.right);
}

export function yOf({ y, frame }: Scale, rate: number): number {
  const room = frame.height - frame.top - frame.bottom;
  return frame.top + ((y[1] - Math.log10(rate)) / (y[1] - y[0])) * room;
}

/** Return powers of ten, with at most `maxSteps` steps between them. */
export function ticks([low, high]: readonly [number, number], maxSteps: number): number[] {
  const step = Math.max(1, Math.ceil((high - low) / maxSteps));
  return Array.from({ length: Math.floor((high - low) / step) + 1 }, (_, i) => 10 ** (low + i * step));
}

/** Return points whose area grows with the ops' time. The largest come first, so that small ones are drawn over them. */
export function pointsOf(rows: readonly RooflineRow[], scale: Scale): Point[] {
  const maxNs = rows.reduce((largest, row) => Math.max(largest, row.total_ns), 1);
  return rows
    .map((row) => ({
      row,
      x: xOf(scale, row.intensity ?? 1),
      y: yOf(scale, row.flops_per_s),
      radius: Math.max(MIN_RADIUS_PX, Math.sqrt(row.total_ns / maxNs) * MAX_RADIUS_PX),
    }))
    .sort((a, b) => b.radius - a.radius);
}

/** Return a line for each flat roof: it rises along the memory roof of its source, then it is flat. */
export function linesOf(rows: readonly RooflineRow[], roofs: readonly Roof[], scale: Scale): Line[] {
  const lines = flatRoofs(rows, roofs)
    .map((roof) => lineOf(roof, memoryOf(roof, roofs), scale))
    .sort((a, b) => a.y - b.y);
  return withLabelsApart(lines);
}

function lineOf(roof: Roof, memory: number | null, scale: Scale): Line {
  const [first, last] = scale.x.map((power) => 10 ** power) as [number, number];
  const limit = (intensity: number): number =>
    Math.max(memory === null ? roof.rate : Math.min(roof.rate, intensity * memory), 10 ** scale.y[0]);
  const corners = [first, last];
  if (memory !== null) corners.push(roof.rate / memory, 10 ** scale.y[0] / memory);
  const inside = corners.filter((at) => at >= first && at <= last).sort((a, b) => a - b);
  const path = inside.map(
    (at, i) => `${i ? "L" : "M"}${xOf(scale, at).toFixed(1)},${yOf(scale, limit(at)).toFixed(1)}`,
  );
  return { source: roof.source, roof, path: path.join(""), x: xOf(scale, last), y: yOf(scale, limit(last)) };
}

/** Return the lines with their labels moved down where they would overlap. */
function withLabelsApart(lines: readonly Line[]): Line[] {
  let above = -Infinity;
  return lines.map((line) => {
    const y = Math.max(line.y, above + LABEL_PX);
    above = y;
    return { ...line, y };
  });
}
