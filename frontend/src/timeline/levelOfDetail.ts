/**
 * Level of detail: the colour of each pixel of a row. A row may have many thousand slices, but there is only time to look at a
 * few dozen of them for a pixel: a pyramid of maxima gives the heaviest slice, prefix sums give the covered time.
 */
import { LEVELS, Shade } from "./colours";
import type { TimelineModel } from "./model";

const FAN_OUT = 16;
/** Factor of the weight of a dimmed slice: so small that every slice that is not dimmed is heavier. */
const DIM_WEIGHT = 1e-15;
/** A slice of at least this many pixels is drawn from edge to edge; narrower ones share pixels. */
const MIN_EDGE_TO_EDGE_PX = 2;
/** A slice of at least this many pixels has a line at its end. */
const MIN_END_LINE_PX = 4;

/** Slices that were drawn wide enough for a label. The arrays are reused for each frame, and grow if they are full. */
export class Labels {
  count = 0;
  slice = new Int32Array(1024);
  row = new Int32Array(1024);
  left = new Float32Array(1024);
  right = new Float32Array(1024);

  clear(): void {
    this.count = 0;
  }

  add(slice: number, row: number, left: number, right: number): void {
    if (this.count === this.slice.length) this.grow();
    this.slice[this.count] = slice;
    this.row[this.count] = row;
    this.left[this.count] = left;
    this.right[this.count++] = right;
  }

  private grow(): void {
    const size = this.slice.length * 2;
    const wider = <T extends Int32Array | Float32Array>(old: T, fresh: T): T => (fresh.set(old), fresh);
    this.slice = wider(this.slice, new Int32Array(size));
    this.row = wider(this.row, new Int32Array(size));
    this.left = wider(this.left, new Float32Array(size));
    this.right = wider(this.right, new Float32Array(size));
  }
}

export class LevelIndex {
  /** [slices] weights; negative: hidden. The heaviest slice in a pixel gives the pixel its colour. */
  private readonly weight: Float32Array;
  /** [slices + 1] visible time before each slice. */
  private readonly covered: Float64Array;
  /** levels[k][b]: the heaviest slice of block b of 16^(k+1) slices. */
  private readonly levels: Int32Array[] = [];

  constructor(
    private readonly model: TimelineModel,
    public shade: Uint8Array,
  ) {
    this.weight = new Float32Array(model.count);
    this.covered = new Float64Array(model.count + 1);
    for (let n = model.count; n > FAN_OUT;) {
      n = Math.ceil(n / FAN_OUT);
      this.levels.push(new Int32Array(n));
    }
    this.update(shade);
  }

  /** Replace the shades. Takes time linear in the slices: about 20 ms for 2^20. */
  update(shade: Uint8Array): void {
    this.shade = shade;
    const { duration, count } = this.model;
    let sum = 0;
    for (let i = 0; i < count; i++) {
      const visible = shade[i] !== Shade.HIDDEN;
      this.weight[i] = visible ? (duration[i] + 1) * (shade[i] === Shade.DIM ? DIM_WEIGHT : 1) : -1;
      this.covered[i] = sum;
      if (visible) sum += duration[i];
    }
    this.covered[count] = sum;
    this.buildLevels();
  }

  private buildLevels(): void {
    let below: Int32Array | null = null;
    for (const level of this.levels) {
      const size: number = below === null ? this.model.count : below.length;
      for (let block = 0; block < level.length; block++) {
        const end = Math.min(size, (block + 1) * FAN_OUT);
        let best = below === null ? block * FAN_OUT : below[block * FAN_OUT];
        for (let k = block * FAN_OUT + 1; k < end; k++) {
          const candidate = below === null ? k : below[k];
          if (this.weight[candidate] > this.weight[best]) best = candidate;
        }
        level[block] = best;
      }
      below = level;
    }
  }

  /** Return the heaviest slice of from..to (not empty): the longest normal, else the longest dimmed, else a hidden one. */
  heaviest(from: number, to: number): number {
    const { weight } = this;
    let best = from;
    let i = from;
    while (i < to) {
      let level = -1;
      let span = 1;
      while (level + 1 < this.levels.length && i % (span * FAN_OUT) === 0 && i + span * FAN_OUT <= to) {
        level++;
        span *= FAN_OUT;
      }
      const candidate = level < 0 ? i : this.levels[level][i / span];
      if (weight[candidate] > weight[best]) best = candidate;
      i += span;
    }
    return best;
  }

  /** Return how much of t0..t1 a row's visible slices from..to cover. All of these slices touch t0..t1. */
  coverage(from: number, to: number, t0: number, t1: number): number {
    const { start, duration } = this.model;
    let time = this.covered[to] - this.covered[from];
    if (start[from] < t0 && this.weight[from] >= 0) time -= t0 - start[from];
    const last = to - 1;
    const over = start[last] + duration[last] - t1;
    if (over > 0 && this.weight[last] >= 0) time -= over;
    return time;
  }

  /** Return the first slice of from..to that starts at or after t, else `to`: by doubling steps, then by bisection. */
  nextStart(from: number, to: number, t: number): number {
    const { start } = this.model;
    let step = 1;
    let low = from;
    let high = from;
    while (high < to && start[high] < t) {
      low = high + 1;
      high += step;
      step *= 2;
    }
    high = Math.min(high, to);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (start[middle] >= t) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  isHidden(slice: number): boolean {
    return this.shade[slice] === Shade.HIDDEN;
  }
}

/** The colours of a painter; see `Palette` in colours.ts. */
export interface Colours {
  /** [slices] the colour slot of each. */
  slots: Uint8Array;
  pixels: Uint32Array;
  edges: Uint32Array;
}

/** Paints rows into lines of pixels. Pixel p stands for the time from t0 + p * nsPerPx to t0 + (p + 1) * nsPerPx. */
export class RowPainter {
  private x = 0;
  private at = 0;

  constructor(
    private readonly model: TimelineModel,
    private readonly index: LevelIndex,
    private readonly colours: Colours,
    private readonly out: Uint32Array,
    private readonly width: number,
    private readonly t0: number,
    private readonly nsPerPx: number,
    private readonly labels: Labels | null = null,
    private readonly labelWidth = Infinity,
  ) {}

  /** Paint a row over the pixels out[at : at + width]. */
  paint(row: number, at: number): void {
    const { start, duration, rowOffsets } = this.model;
    const to = rowOffsets[row + 1];
    const wide = MIN_EDGE_TO_EDGE_PX * this.nsPerPx;
    this.at = at;
    this.x = 0;
    let i = this.model.firstEndingAfter(row, this.t0);
    while (i < to && this.x < this.width && start[i] < this.t0 + this.width * this.nsPerPx) {
      i = duration[i] >= wide ? this.paintWide(i, row) : this.paintNarrow(i, to, wide);
    }
  }

  private style(slice: number): number {
    return this.colours.slots[slice] * 2 + (this.index.shade[slice] === Shade.DIM ? 0 : 1);
  }

  private paintWide(slice: number, row: number): number {
    const { start, duration } = this.model;
    const left = (start[slice] - this.t0) / this.nsPerPx;
    const right = left + duration[slice] / this.nsPerPx;
    const from = Math.max(this.x, Math.round(left));
    const end = Math.min(this.width, Math.round(right));
    if (end > from && !this.index.isHidden(slice)) {
      const style = this.style(slice);
      this.out.fill(this.colours.pixels[style * LEVELS + LEVELS - 1], this.at + from, this.at + end);
      if (right - left >= MIN_END_LINE_PX && end < this.width) this.out[this.at + end - 1] = this.colours.edges[style];
      if (this.labels !== null && end - from >= this.labelWidth) this.labels.add(slice, row, from, end);
    }
    this.x = Math.max(this.x, end);
    return slice + 1;
  }

  /** Paint all slices that begin in one pixel as one colour. Returns the slice to continue with. */
  private paintNarrow(slice: number, to: number, wide: number): number {
    const { start, duration } = this.model;
    const pixel = Math.max(this.x, Math.floor((start[slice] - this.t0) / this.nsPerPx));
    if (pixel >= this.width) return to;
    const pixelEnd = this.t0 + (pixel + 1) * this.nsPerPx;
    const next = Math.max(slice + 1, this.index.nextStart(slice + 1, to, pixelEnd));
    const best = this.index.heaviest(slice, next);
    const lastSlice = next - 1;
    if (duration[lastSlice] >= wide) {
      // A wide slice begins in this pixel: it is drawn from edge to edge, and the pixel shows the slices before it.
      this.paintPixel(pixel, slice, lastSlice);
      this.x = Math.round((start[lastSlice] - this.t0) / this.nsPerPx);
      return lastSlice;
    }
    this.paintPixel(pixel, slice, next, best);
    this.x = pixel + 1;
    // The last slice may reach far into the next pixel. It is then shown there, too, unless a longer slice is.
    return start[lastSlice] + duration[lastSlice] > pixelEnd + this.nsPerPx * 0.5 ? lastSlice : next;
  }

  private paintPixel(pixel: number, from: number, to: number, best = this.index.heaviest(from, to)): void {
    if (from >= to || this.index.isHidden(best)) return;
    const begin = this.t0 + pixel * this.nsPerPx;
    const share = this.index.coverage(from, to, begin, begin + this.nsPerPx) / this.nsPerPx;
    const level = Math.max(0, Math.min(LEVELS - 1, Math.floor(share * LEVELS)));
    this.out[this.at + pixel] = this.colours.pixels[this.style(best) * LEVELS + level];
  }
}
