/** The step chart's drawing: uPlot with a band from the shortest to the longest step, changes and traced steps marked. */
import type uPlot from "uplot";
import { formatCount, formatSeconds } from "@/format";
import type { Change } from "./changes";
import type { Times } from "./times";

export interface Look {
  line: string;
  band: string;
  mark: string;
  grid: string;
  text: string;
  font: string;
}

export interface Marks {
  /** Steps whose traces can be opened. */
  readonly traces: readonly number[];
  readonly changes: readonly Change[];
}

/** Rows for uPlot: step, mean, min, max. */
export function chartData(times: Times): uPlot.AlignedData {
  return [times.step, times.mean, times.min, times.max] as uPlot.AlignedData;
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
  ctx.strokeStyle = ctx.fillStyle = look.mark;
  for (const step of marks.traces) {
    line(u, step);
    flag(u, step);
  }
  ctx.restore();
}

function line(u: uPlot, step: number): void {
  const x = Math.round(u.valToPos(step, "x", true)) + 0.5;
  u.ctx.beginPath();
  u.ctx.moveTo(x, u.bbox.top);
  u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
  u.ctx.stroke();
}

function flag(u: uPlot, step: number): void {
  const x = Math.round(u.valToPos(step, "x", true)) + 0.5;
  const size = 6 * devicePixelRatio;
  u.ctx.beginPath();
  u.ctx.moveTo(x - size, u.bbox.top);
  u.ctx.lineTo(x + size, u.bbox.top);
  u.ctx.lineTo(x, u.bbox.top + size * 1.4);
  u.ctx.fill();
}

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
  /** The y axis' end in seconds. */
  top: () => number;
  onRange: (from: number, to: number) => void;
}

export function chartOptions(options: ChartOptions): uPlot.Options {
  const { look } = options;
  return {
    width: options.width,
    height: options.height,
    padding: [12, 12, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { size: 7 } },
    scales: { x: { time: false }, y: { range: () => [0, options.top()] } },
    axes: [axis(look, formatCount, 28), axis(look, (v) => formatSeconds(v), 64)],
    series: [
      {},
      { stroke: look.line, width: 1.5, points: { show: false } },
      { stroke: "transparent", points: { show: false } },
      { stroke: "transparent", points: { show: false } },
    ],
    bands: [{ series: [3, 2], fill: look.band }],
    hooks: {
      draw: [(u) => drawMarks(u, options.marks(), look)],
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

/** The traced step within reach of the mouse, in CSS pixels. */
export function traceAt(u: uPlot, x: number, traces: readonly number[], reach = 8): number | undefined {
  const near = traces.map((step) => ({ step, far: Math.abs(u.valToPos(step, "x") - x) })).filter((t) => t.far <= reach);
  return near.sort((a, b) => a.far - b.far)[0]?.step;
}
