/**
 * Draws counters below the lanes. A column of pixels reaches up to the greatest value in its time, and is strongest between the
 * least value and the mean. A counter of shares shows only the mean: a GPU that is busy for half of a column's time fills half of
 * the column. Counters are a pixel image, like the lanes' rows: to draw paths with thousands of corners takes more than a frame.
 */
import { mix, pack, slotColour, slotOf, type Rgb, type Scheme, type Theme } from "./colours";
import type { CounterSeries } from "./counters";
import type { Layout } from "./layout";
import { Kind } from "./model";
import type { Viewport } from "./viewport";

const KINDS: readonly (readonly [prefix: string, kind: number])[] = [
  ["running", Kind.COMPUTE],
  ["ready", Kind.INPUT],
  ["in-flight", Kind.COMMUNICATION],
  ["gpu", Kind.SYNC],
  ["memory", Kind.COPY],
];

/** Return a counter's colour: the colour of the kind of slices that is closest to what it counts. */
export function counterColour(key: string, scheme: Scheme): Rgb {
  const kind = KINDS.find(([prefix]) => key.startsWith(prefix))?.[1] ?? Kind.CONTROL;
  return slotColour(slotOf("MatMul", kind), scheme);
}

/** The lines of a counter in the image, and the y of its top on the canvas, in device pixels. */
interface Plot {
  readonly first: number;
  readonly lines: number;
  readonly top: number;
}

export class CounterPainter {
  private readonly canvas = document.createElement("canvas");
  private readonly context = this.canvas.getContext("2d", { alpha: false });
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(1);

  /** `ground`: one line of background pixels. `top`: where the lanes begin, and the height that pinned lanes cover, in px. */
  draw(
    target: CanvasRenderingContext2D,
    viewport: Viewport,
    layout: Layout,
    series: readonly CounterSeries[],
    theme: Theme,
    ground: Uint32Array,
    ratio: number,
    top: { readonly lanes: number; readonly covered: number },
  ): void {
    const shown = layout.counters.filter((band) => {
      const y = band.plotTop - viewport.scrollY;
      return y + band.plotHeight > top.covered && y < viewport.height;
    });
    if (shown.length === 0 || this.context === null) return;
    const width = ground.length;
    this.reserve(
      width,
      shown.reduce((sum, band) => sum + Math.ceil(band.plotHeight * ratio) + 1, 0),
    );
    let first = 0;
    const plots = shown.map((band): Plot => {
      const y = Math.round((top.lanes + band.plotTop - viewport.scrollY) * ratio);
      const lines = Math.round(band.plotHeight * ratio);
      this.paint(series[band.index], first, lines, viewport, theme, ground, ratio);
      const plot = { first, lines, top: y };
      first += lines;
      return plot;
    });
    this.context.putImageData(this.image, 0, 0, 0, 0, width, first);
    target.save();
    target.setTransform(1, 0, 0, 1, 0, 0);
    target.beginPath();
    target.rect(0, Math.round((top.lanes + top.covered) * ratio), width, target.canvas.height);
    target.clip();
    for (const plot of plots) {
      target.drawImage(this.canvas, 0, plot.first, width, plot.lines, 0, plot.top, width, plot.lines);
    }
    target.restore();
  }

  private reserve(width: number, lines: number): void {
    if (this.image.width === width && this.image.height >= lines) return;
    this.image = new ImageData(width, lines);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.canvas.width = width;
    this.canvas.height = lines;
  }

  private paint(
    series: CounterSeries,
    first: number,
    lines: number,
    viewport: Viewport,
    theme: Theme,
    ground: Uint32Array,
    ratio: number,
  ): void {
    const width = ground.length;
    const { pixels } = this;
    const colour = counterColour(series.key, theme.scheme);
    const [low, high, spread] = [0.45, 0.85, 0.65].map((share) => pack(mix(theme.lane, colour, share)));
    for (let line = 0; line < lines; line++) pixels.set(ground, (first + line) * width);
    const scale = viewport.nsPerPx / ratio;
    // rounded as for the lanes, so that nothing flickers while the view moves
    const t0 = Math.round(viewport.t0 / scale) * scale;
    paintCounter(series, { pixels, width, first, lines }, t0, scale, { low, high, spread });
  }
}

/** The lines of one counter in an image of several counters. */
export interface CounterPlot {
  readonly pixels: Uint32Array;
  readonly width: number;
  /** The first of the counter's lines. */
  readonly first: number;
  readonly lines: number;
}

/** Packed pixels: `low` up to the least value, `high` from there to the mean, `spread` from there to the greatest value. */
export interface CounterShades {
  readonly low: number;
  readonly high: number;
  readonly spread: number;
}

/** Paint a counter over the pixels. Column x stands for the time from t0 + x * scale to t0 + (x + 1) * scale, in ns. */
export function paintCounter(
  series: CounterSeries,
  { pixels, width, first, lines }: CounterPlot,
  t0: number,
  scale: number,
  { low, high, spread }: CounterShades,
): void {
  const height = (value: number): number =>
    value <= 0 || series.highest <= 0 ? 0 : Math.max(1, Math.round((value / series.highest) * (lines - 1)));
  const bottom = first + lines - 1;
  let point = 0;
  for (let x = Math.max(0, Math.floor(-t0 / scale)); x < width; x++) {
    const begin = Math.max(0, t0 + x * scale);
    const end = Math.min(series.endNs, t0 + (x + 1) * scale);
    if (begin >= series.endNs) break;
    if (begin >= end) continue; // rounding may leave a column that ends where the step begins, or before
    point = series.pointAt(begin, point);
    const next = series.pointBefore(end, point) + 1;
    const mean = height(series.meanOf(begin, end, point, next - 1));
    const isFlat = series.unit === "share" || next === point + 1;
    const most = isFlat ? mean : height(series.mostOf(point, next));
    const least = isFlat ? mean - 1 : height(series.leastOf(point, next)); // a flat stretch has a line on top
    for (let y = 0; y < most; y++) pixels[(bottom - y) * width + x] = y < least ? low : y < mean ? high : spread;
  }
}
