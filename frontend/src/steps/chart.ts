/**
 * Draws the step chart: a line for the step times and, where older steps are aggregated, a band down to the shortest step with
 * the mean of the other steps in it. The line shows the longest step of an entry, because only it shows a slow step in full.
 */
import type uPlot from "uplot";
import { formatCount, formatSeconds } from "@/format";
import type { Mark, Stall, StepChange } from "@/client/messages";
import type { Times } from "./times";

export interface Look {
  line: string;
  mean: string;
  band: string;
  mark: string;
  stall: string;
  event: string;
  grid: string;
  text: string;
  font: string;
}

export interface Marks {
  /** Steps whose traces can be opened. */
  readonly kept: readonly number[];
  /** All steps that were traced. */
  readonly traced: ReadonlySet<number>;
  readonly changes: readonly StepChange[];
  readonly stalls: readonly Stall[];
  /** Garbage collections, checkpoints and trouble on the machine. */
  readonly events: readonly Mark[];
}

/**
 * Return rows for uPlot: step, longest, shortest, and the mean of an entry's steps without the longest (null for an entry of one
 * step). With the longest step, the mean would depend on how many steps an entry stands for, even if slow steps are equal.
 */
export function chartData({ step, count, mean, min, max }: Times): uPlot.AlignedData {
  const meanOfOthers = Array.from(count, (n, i) => (n > 1 ? (mean[i]! * n - max[i]!) / (n - 1) : null));
  return [step, max, min, meanOfOthers] as uPlot.AlignedData;
}

/** Heights in CSS pixels of the ticks of traced steps: TICK if the trace is kept, else SHORT_TICK. */
const TICK = 14;
const SHORT_TICK = 6;

/** Signs are above the plot, so that they hide no step. CSS pixels from the plot's top up to the middle of each row of signs. */
const STALL_ROW = 24;
const EVENT_ROW = 9;
/** Half the size of a sign, in CSS pixels. */
const SIGN = 4;
export const SIGNS_HEIGHT = 34;

/** Draw a sign. Each kind has its own shape, so that colour alone distinguishes nothing. */
function sign(u: uPlot, kind: Mark["kind"] | Stall["where"], step: number, row: number): void {
  const { ctx, bbox } = u;
  const x = u.valToPos(step, "x", true);
  if (x < bbox.left || x > bbox.left + bbox.width) return;
  const size = SIGN * devicePixelRatio;
  const y = bbox.top - row * devicePixelRatio;
  ctx.beginPath();
  if (kind === "gc") ctx.arc(x, y, size * 0.8, 0, 2 * Math.PI);
  else if (kind === "checkpoint") ctx.rect(x - size * 0.8, y - size * 0.8, size * 1.6, size * 1.6);
  else {
    const corners = kind === "host" ? [0, -1, 1, 0, 0, 1, -1, 0] : [-1, -0.8, 1, -0.8, 0, 1];
    for (let i = 0; i < corners.length; i += 2) ctx.lineTo(x + corners[i]! * size, y + corners[i + 1]! * size);
  }
  ctx.closePath();
  if (kind === "between") ctx.stroke();
  else ctx.fill();
}

function drawSigns(u: uPlot, marks: Marks, look: Look): void {
  const { ctx } = u;
  ctx.save();
  ctx.lineWidth = 1.3 * devicePixelRatio;
  ctx.fillStyle = look.event;
  for (const event of marks.events) if (event.step !== null) sign(u, event.kind, event.step, EVENT_ROW);
  ctx.fillStyle = ctx.strokeStyle = look.stall;
  for (const stall of marks.stalls) if (stall.step !== null) sign(u, stall.where, stall.step, STALL_ROW);
  ctx.restore();
}

function drawMarks(u: uPlot, marks: Marks, look: Look): void {
  const { ctx, bbox } = u;
  const scale = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.lineWidth = scale;
  ctx.strokeStyle = look.text;
  ctx.setLineDash([3 * scale, 4 * scale]);
  for (const change of marks.changes) line(u, change.step);
  ctx.setLineDash([]);
  ctx.strokeStyle = look.text;
  for (const step of marks.traced) tick(u, step, SHORT_TICK);
  ctx.strokeStyle = look.mark;
  for (const step of marks.kept) tick(u, step, TICK);
  ctx.restore();
}

function line(u: uPlot, step: number): void {
  stroke(u, step, u.bbox.height);
}

/** Draw a short line at the bottom, which marks a traced step and does not hide its time. */
function tick(u: uPlot, step: number, height: number): void {
  stroke(u, step, height * devicePixelRatio);
}

function stroke(u: uPlot, step: number, height: number): void {
  const x = Math.round(u.valToPos(step, "x", true)) + 0.5;
  const bottom = u.bbox.top + u.bbox.height;
  u.ctx.beginPath();
  u.ctx.moveTo(x, bottom - height);
  u.ctx.lineTo(x, bottom);
  u.ctx.stroke();
}

/** Possible distances between the labels on the axis of steps: whole numbers of steps. */
const STEP_INCREMENTS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

function axis(look: Look, values: (split: number) => string, size: number): uPlot.Axis {
  return {
    stroke: look.text,
    font: look.font,
    size,
    gap: 6,
    grid: { stroke: look.grid, width: 1 },
    ticks: { show: false },
    border: { show: false },
    values: (_u, splits) => splits.map(values),
  };
}

export interface ChartOptions {
  width: number;
  height: number;
  look: Look;
  marks: () => Marks;
  /** The upper end of the y axis, in seconds. */
  top: () => number;
  onRange: (from: number, to: number) => void;
}

export function chartOptions(options: ChartOptions): uPlot.Options {
  const { look } = options;
  return {
    width: options.width,
    height: options.height,
    padding: [SIGNS_HEIGHT, 28, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
    scales: { x: { time: false }, y: { range: () => [0, options.top()] } },
    axes: [{ ...axis(look, formatCount, 28), incrs: STEP_INCREMENTS }, axis(look, (v) => formatSeconds(v), 64)],
    series: [
      {},
      { stroke: look.line, width: 1.5, points: { show: false } },
      { stroke: "transparent", points: { show: false } },
      { stroke: look.mean, width: 1.5, points: { show: false } },
    ],
    bands: [{ series: [1, 2], fill: look.band }],
    hooks: {
      draw: [
        (u): void => {
          drawMarks(u, options.marks(), look);
          drawSigns(u, options.marks(), look);
        },
      ],
      setSelect: [
        (u) => {
          const { left, width } = u.select;
          if (width < 4) return;
          options.onRange(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
          u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
        },
      ],
    },
  };
}

/** Return the item whose step is nearest to x, and at most `reach` CSS pixels away. */
function nearest<T>(
  u: uPlot,
  x: number,
  items: readonly T[],
  step: (item: T) => number | null,
  reach: number,
): T | undefined {
  const distance = (item: T): number => Math.abs(u.valToPos(step(item) ?? NaN, "x") - x);
  return items.filter((item) => distance(item) <= reach).sort((a, b) => distance(a) - distance(b))[0];
}

/** Return the nearest traced step within `reach` CSS pixels of the mouse. */
export function traceAt(u: uPlot, x: number, traces: readonly number[], reach = 8): number | undefined {
  return nearest(u, x, traces, (step) => step, reach);
}

/** Return the slow step whose sign is within reach of the mouse. `y` is negative above the plot. */
export function stallAt(u: uPlot, x: number, y: number, stalls: readonly Stall[], reach = 6): Stall | undefined {
  return Math.abs(y + STALL_ROW) <= reach + SIGN ? nearest(u, x, stalls, (stall) => stall.step, reach) : undefined;
}
