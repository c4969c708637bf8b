/**
 * Draws a view of the timeline on a canvas. Slices are painted into an image with one line of pixels for each row; one call for
 * each lane stretches the lines to the rows' height. A frame takes 3 ms; 33,000 calls of fillRect would take 25 ms.
 */
import { arrowsOf, middleOfSlice, type Dependency } from "./arrows";
import { css, pack, Palette, type Theme } from "./colours";
import { CounterPainter } from "./counterPainter";
import type { CounterSeries } from "./counters";
import { drawArrow } from "./drawArrow";
import { drawBookmarks } from "./drawBookmarks";
import type { Band, Layout } from "./layout";
import { Labels, LevelIndex, RowPainter } from "./levelOfDetail";
import type { TimelineModel } from "./model";
import { coloursOf } from "./resolveColourClashes";
import { labelOf } from "./opNames";
import { gaps } from "./rangeStatistics";
import { ticks, type Tick } from "./ruler";
import { drawStepEnds } from "./stepEnds";
import { TextFitter } from "./text";
import type { Bookmark } from "@/client/messages";
import { formatNs } from "@/format";
import type { Viewport } from "./viewport";

export const RULER_HEIGHT = 28;
const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
/** Minimum width of a slice with a label, in CSS pixels. */
const LABEL_FROM = 30;
const LABEL_PADDING = 5;
/** Maximum labels in a frame, in the order in which rows are painted. A screen full of 30 px slices has no more. */
const MAX_LABELS = 1500;

export interface Overlay {
  selected: number;
  range: readonly [number, number] | null;
  dependencies: readonly Dependency[];
  /** Whether idle times of lanes are marked. */
  idle: boolean;
  /** If two timelines are compared: the time in ns at the cursor in the other timeline; null: none. */
  cursor: number | null;
}

/** Lines of the image that are drawn together: `lines` lines from line `first` on, at `y`, each `rowHeight` CSS pixels high. */
interface Strip {
  first: number;
  lines: number;
  y: number;
  rowHeight: number;
  pinned: boolean;
}

export class Renderer {
  /** [slices] the colour slot of each. */
  slots: Uint8Array;
  readonly index: LevelIndex;
  counters: readonly CounterSeries[] = [];
  bookmarks: readonly Bookmark[] = [];
  private readonly counterPainter = new CounterPainter();
  private readonly context: CanvasRenderingContext2D;
  private readonly lines = document.createElement("canvas");
  private readonly lineContext: CanvasRenderingContext2D;
  private readonly labels = new Labels();
  private readonly fitter: TextFitter;
  private readonly gapsOfLane = new Map<number, [Float64Array, Float64Array]>();
  private image = new ImageData(1, 1);
  private pixels = new Uint32Array(1);
  private palette: Palette;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly model: TimelineModel,
    theme: Theme,
    shade: Uint8Array,
  ) {
    this.context = contextOf(canvas);
    this.lineContext = contextOf(this.lines);
    this.fitter = fitterOf(this.context);
    this.palette = new Palette(theme);
    this.slots = coloursOf(model).slotsOf(model);
    this.index = new LevelIndex(model, shade);
  }

  get theme(): Theme {
    return this.palette.theme;
  }

  set theme(theme: Theme) {
    this.palette = new Palette(theme);
  }

  get colours(): { slots: Uint8Array; pixels: Uint32Array; edges: Uint32Array } {
    return { slots: this.slots, pixels: this.palette.pixels, edges: this.palette.edges };
  }

  draw(viewport: Viewport, layout: Layout, overlay: Overlay, ratio: number): void {
    const { context } = this;
    const marks = ticks(viewport.t0, viewport.nsPerPx, viewport.width);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = css(this.theme.background);
    context.fillRect(0, 0, this.canvas.width, this.canvas.height);
    const strips = this.paintLines(viewport, layout, overlay, marks, ratio);
    this.stretch(strips, layout.stickyHeight(viewport.height), ratio);
    const top = { lanes: RULER_HEIGHT, covered: layout.stickyHeight(viewport.height) };
    const ground = this.emptyLine(this.canvas.width, marks, ratio);
    this.counterPainter.draw(context, viewport, layout, this.counters, this.theme, ground, ratio, top);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.drawLabels(viewport, layout, ratio);
    drawStepEnds(context, viewport, this.theme);
    this.drawRange(viewport, overlay);
    this.drawDependencies(viewport, layout, overlay);
    this.drawSelection(viewport, layout, overlay.selected);
    this.drawRuler(viewport, marks, overlay);
  }

  // ---------------------------------------------------------------------------------------------------------- slices

  private paintLines(viewport: Viewport, layout: Layout, overlay: Overlay, marks: Tick[], ratio: number): Strip[] {
    const width = this.canvas.width;
    const shown = this.visibleRows(viewport, layout, ratio);
    this.reserve(
      width,
      shown.reduce((sum, { rows }) => sum + rows.length, 0),
    );
    const scale = viewport.nsPerPx / ratio;
    const t0 = Math.round(viewport.t0 / scale) * scale; // whole pixels, so that nothing flickers while the view moves
    this.labels.clear();
    const painter = new RowPainter(
      this.model,
      this.index,
      this.colours,
      this.pixels,
      width,
      t0,
      scale,
      this.labels,
      LABEL_FROM * ratio,
    );
    const empty = this.emptyLine(width, marks, ratio);
    let line = 0;
    return shown.map(({ band, rows, y, rowHeight }) => {
      const ground = overlay.idle ? this.withGaps(empty, band, t0, scale) : empty;
      const first = line;
      for (const row of rows) {
        this.pixels.set(ground, line * width);
        painter.paint(row, line++ * width);
      }
      return { first, lines: rows.length, y, rowHeight, pinned: band.pinned };
    });
  }

  /** Return the rows in view, band by band. Pinned bands come last, because they cover the others. */
  private visibleRows(
    viewport: Viewport,
    layout: Layout,
    ratio: number,
  ): { band: Band; rows: number[]; y: number; rowHeight: number }[] {
    const sticky = layout.stickyHeight(viewport.height);
    const visible = [];
    for (const band of [...layout.bands].sort((a, b) => Number(a.pinned) - Number(b.pinned))) {
      const shift = layout.screenTop(band, viewport.scrollY, viewport.height) - band.top;
      const top = band.rowsTop + shift;
      const visibleTop = band.pinned ? 0 : sticky;
      const { first_row, rows } = band.lane;
      // a folded lane of very many rows shows as many of them as there are pixels
      const stride = Math.max(1, Math.floor(1 / (band.rowHeight * ratio)));
      const from = Math.max(0, Math.floor((visibleTop - top) / band.rowHeight));
      const to = Math.min(rows, Math.ceil((viewport.height - top) / band.rowHeight));
      if (from >= to) continue;
      const list: number[] = [];
      for (let r = from; r < to; r += stride) list.push(first_row + r);
      const rowHeight = ((to - from) * band.rowHeight) / list.length;
      visible.push({ band, rows: list, y: RULER_HEIGHT + top + from * band.rowHeight, rowHeight });
    }
    return visible;
  }

  private reserve(width: number, lines: number): void {
    if (this.image.width === width && this.image.height >= lines) return;
    const height = Math.max(32, Math.ceil(lines * 1.25));
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.lines.width = width;
    this.lines.height = height;
  }

  private emptyLine(width: number, marks: readonly Tick[], ratio: number): Uint32Array {
    const line = new Uint32Array(width).fill(pack(this.theme.lane));
    const grid = pack(this.theme.grid);
    for (const { x, major } of marks) if (major) line[Math.round(x * ratio)] = grid;
    return line;
  }

  /** Return the empty line of a lane, with its idle times marked if it is a lane of ops or kernels. */
  private withGaps(empty: Uint32Array, band: Band, t0: number, scale: number): Uint32Array {
    const { kind, first_row, rows } = band.lane;
    if (kind !== "compute" && kind !== "kernel") return empty;
    let idle = this.gapsOfLane.get(band.index);
    if (idle === undefined) {
      idle = gaps(this.model, null, first_row, rows, 0, this.model.durationNs);
      this.gapsOfLane.set(band.index, idle);
    }
    const line = empty.slice();
    const colour = pack(this.theme.idle);
    const [starts, ends] = idle;
    for (let i = firstAbove(ends, t0); i < starts.length; i++) {
      const from = Math.round((starts[i] - t0) / scale);
      if (from >= line.length) break;
      line.fill(colour, Math.max(0, from), Math.max(0, Math.round((ends[i] - t0) / scale)));
    }
    return line;
  }

  /** Stretch the lines to their rows, and draw a hairline between rows. */
  private stretch(strips: readonly Strip[], sticky: number, ratio: number): void {
    const scrolled = strips.filter((strip) => !strip.pinned);
    const pinned = strips.filter((strip) => strip.pinned);
    const last = strips.at(-1);
    if (last === undefined) return;
    this.lineContext.putImageData(this.image, 0, 0, 0, 0, this.canvas.width, last.first + last.lines);
    this.stretchAll(scrolled, ratio);
    if (sticky === 0 && pinned.length === 0) return;
    this.context.fillStyle = css(this.theme.background);
    this.context.fillRect(0, 0, this.canvas.width, Math.round((RULER_HEIGHT + sticky) * ratio));
    this.stretchAll(pinned, ratio);
  }

  private stretchAll(strips: readonly Strip[], ratio: number): void {
    const { context } = this;
    const width = this.canvas.width;
    context.imageSmoothingEnabled = false;
    context.beginPath();
    for (const { first, lines, y, rowHeight } of strips) {
      const top = Math.round(y * ratio);
      const height = Math.round((y + lines * rowHeight) * ratio) - top;
      context.drawImage(this.lines, 0, first, width, lines, 0, top, width, height);
      if (rowHeight * ratio < 4) continue;
      for (let k = 1; k <= lines; k++) context.rect(0, Math.round((y + k * rowHeight) * ratio) - 1, width, 1);
    }
    context.fillStyle = css(this.theme.background);
    context.fill();
  }

  // ---------------------------------------------------------------------------------------------------------- labels

  private drawLabels(viewport: Viewport, layout: Layout, ratio: number): void {
    const { context, labels } = this;
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "left";
    const clip = RULER_HEIGHT + layout.stickyHeight(viewport.height);
    const bands = layout.bands;
    let band: Band | undefined;
    let style = "";
    for (let k = 0; k < Math.min(labels.count, MAX_LABELS); k++) {
      const row = labels.row[k];
      const slice = labels.slice[k];
      if (band === undefined || row < band.lane.first_row || row >= band.lane.first_row + band.lane.rows) {
        band = bands.find(({ lane }) => row >= lane.first_row && row < lane.first_row + lane.rows);
      }
      if (band === undefined || band.rowHeight < 12 || this.index.shade[slice] !== 2) continue;
      const shift = layout.screenTop(band, viewport.scrollY, viewport.height) - band.top;
      const y = RULER_HEIGHT + band.rowsTop + shift + (row - band.lane.first_row + 0.5) * band.rowHeight;
      if (!band.pinned && y < clip + band.rowHeight / 2) continue;
      const left = labels.left[k] / ratio;
      const label = labelOf(this.model.nameOf(slice), this.model.opOf(slice));
      const text = this.fitter.fit(label, labels.right[k] / ratio - left - 2 * LABEL_PADDING);
      if (text === "") continue;
      const colour = this.palette.text[this.slots[slice]];
      if (colour !== style) context.fillStyle = style = colour;
      context.fillText(text, left + LABEL_PADDING, y - 0.5);
    }
  }

  // -------------------------------------------------------------------------------------------------------- overlays

  private drawRange(viewport: Viewport, overlay: Overlay): void {
    if (overlay.range === null) return;
    const { context } = this;
    const [left, right] = overlay.range.map((t) => viewport.xAt(t));
    context.fillStyle = this.theme.range;
    context.fillRect(left, RULER_HEIGHT, right - left, viewport.height);
    context.fillStyle = this.theme.accent;
    context.fillRect(left - 0.5, RULER_HEIGHT, 1, viewport.height);
    context.fillRect(right - 0.5, RULER_HEIGHT, 1, viewport.height);
  }

  private drawSelection(viewport: Viewport, layout: Layout, slice: number): void {
    if (slice < 0) return;
    const middle = middleOfSlice(this.model, layout, viewport, slice);
    if (Number.isNaN(middle)) return;
    const { context } = this;
    const left = viewport.xAt(this.model.start[slice]);
    const width = Math.max(3, viewport.xAt(this.model.end(slice)) - left);
    const band = layout.bands.find((b) => b.index === this.model.laneOfRow[this.model.rowOf(slice)]);
    const height = Math.max(4, band?.rowHeight ?? 20) - 1;
    const top = RULER_HEIGHT + middle - (height + 1) / 2;
    // clipped to the view: otherwise a very wide slice's outline would have its corners far outside it
    const x = Math.max(-4, left);
    const clipped = Math.min(left + width, viewport.width + 4) - x;
    context.lineWidth = 3;
    context.strokeStyle = css(this.theme.background);
    context.strokeRect(x - 1, top - 1, clipped + 2, height + 2);
    context.lineWidth = 2;
    context.strokeStyle = this.theme.text;
    context.strokeRect(x - 1, top - 1, clipped + 2, height + 2);
  }

  private drawDependencies(viewport: Viewport, layout: Layout, overlay: Overlay): void {
    const arrows = arrowsOf(this.model, layout, viewport, overlay.dependencies);
    if (arrows.length === 0) return;
    const { context } = this;
    context.save();
    context.beginPath();
    context.rect(0, RULER_HEIGHT, viewport.width, viewport.height);
    context.clip();
    context.translate(0, RULER_HEIGHT);
    for (const arrow of arrows) drawArrow(context, this.theme, arrow);
    context.restore();
  }

  private drawRuler(viewport: Viewport, marks: readonly Tick[], overlay: Overlay): void {
    const { context, theme } = this;
    context.fillStyle = css(theme.background);
    context.fillRect(0, 0, viewport.width, RULER_HEIGHT);
    context.fillStyle = css(theme.line);
    context.fillRect(0, RULER_HEIGHT - 1, viewport.width, 1);
    context.beginPath();
    for (const { x, major } of marks) {
      const height = major ? 9 : 4;
      context.rect(Math.round(x), RULER_HEIGHT - 1 - height, 1, height);
    }
    context.fillStyle = theme.muted;
    context.fill();
    context.font = FONT;
    context.textBaseline = "alphabetic";
    for (const { x, label } of marks) {
      if (label === "" || x + 5 + this.fitter.width(label) > viewport.width) continue;
      context.fillText(label, x + 5, RULER_HEIGHT - 10);
    }
    drawBookmarks(context, viewport, this.bookmarks, theme, this.fitter, RULER_HEIGHT);
    if (overlay.range !== null) this.drawRangeOnRuler(viewport, overlay.range);
    if (overlay.cursor !== null) {
      context.fillStyle = theme.consumerArrow;
      context.fillRect(viewport.xAt(overlay.cursor), 0, 1, RULER_HEIGHT + viewport.height);
    }
  }

  private drawRangeOnRuler(viewport: Viewport, [start, end]: readonly [number, number]): void {
    const { context, theme } = this;
    const left = Math.max(0, viewport.xAt(start));
    const right = Math.min(viewport.width, viewport.xAt(end));
    if (right <= left) return;
    const text = formatNs(end - start);
    const width = this.fitter.width(text) + 12;
    context.fillStyle = theme.accent;
    context.fillRect(left, RULER_HEIGHT - 3, right - left, 3);
    const x = Math.max(0, Math.min((left + right - width) / 2, viewport.width - width));
    context.beginPath();
    context.roundRect(x, 4, width, 18, 4);
    context.fill();
    context.fillStyle = css(theme.background);
    context.textBaseline = "middle";
    context.fillText(text, x + 6, 13.5);
  }
}

let fitter: TextFitter | null = null;

/** Measure the font in advance, while the page waits for its trace: a hundred glyphs take some milliseconds. */
export function measureFont(): void {
  fitterOf(contextOf(document.createElement("canvas")));
}

/** Return the page's one fitter: the glyphs are measured once. */
function fitterOf(context: CanvasRenderingContext2D): TextFitter {
  context.font = FONT;
  fitter ??= new TextFitter((text) => context.measureText(text).width);
  return fitter;
}

function contextOf(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const context = canvas.getContext("2d", { alpha: false });
  if (context === null) throw new Error("this browser has no 2D canvas: open the page in a current one");
  return context;
}

/** Return the first index whose value is above t, in an ascending array. */
function firstAbove(values: Float64Array, t: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] > t) high = middle;
    else low = middle + 1;
  }
  return low;
}
