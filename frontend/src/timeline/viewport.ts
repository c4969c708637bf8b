/** The visible part of a trace: a start time, a scale, and a vertical offset. Pure numbers; no DOM. */

/** The closest zoom. TensorFlow records times in microseconds, but some other sources record nanoseconds. */
const CLOSEST_NS_PER_PX = 0.05;
/** A fitted trace leaves this share of the width free at each side, so that its ends are visible. */
const FIT_MARGIN = 0.01;

export class Viewport {
  /** Time at the left edge, ns. */
  t0 = 0;
  nsPerPx = 1;
  /** How many pixels of the lanes are scrolled out of view at the top. */
  scrollY = 0;
  width = 1;
  height = 1;
  contentHeight = 1;

  /** The step is 0..durationNs. `before`, `behind`: how many ns other work begins before the step and ends after it. */
  constructor(
    public durationNs: number,
    private readonly before = 0,
    private readonly behind = 0,
  ) {}

  get t1(): number {
    return this.t0 + this.width * this.nsPerPx;
  }

  /** Whether other work reaches before or after the step. */
  get reachesBeyond(): boolean {
    return this.before > 0 || this.behind > 0;
  }

  /** Whether the view is at least as wide as the whole step. */
  get fitted(): boolean {
    return this.nsPerPx >= this.fittedNsPerPx * 0.999;
  }

  get maximalScroll(): number {
    return Math.max(0, this.contentHeight - this.height);
  }

  /** The scale at which the whole step fits. */
  private get fittedNsPerPx(): number {
    return (this.durationNs * (1 + 2 * FIT_MARGIN)) / Math.max(1, this.width);
  }

  /** The scale at which the step and all other work fit: the view cannot zoom out further. */
  private get maxNsPerPx(): number {
    return this.fittedNsPerPx + (this.before + this.behind) / Math.max(1, this.width);
  }

  /** Take a new size, and keep the times in view. */
  resize(width: number, height: number): void {
    const [from, to] = [this.t0, this.t1];
    const wasFitted = this.fitted || this.width <= 1;
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
    if (wasFitted) this.fit();
    else this.show(from, to, 0);
    this.clamp();
  }

  fit(): void {
    this.nsPerPx = this.fittedNsPerPx;
    this.t0 = -this.durationNs * FIT_MARGIN;
  }

  /** Show start..end with a margin (a share of the range) at both sides. */
  show(start: number, end: number, margin = 0.05): void {
    const span = Math.max(end - start, this.width * CLOSEST_NS_PER_PX * 0.5);
    this.nsPerPx = (span * (1 + 2 * margin)) / this.width;
    this.t0 = (start + end) / 2 - (this.nsPerPx * this.width) / 2;
    this.clamp();
  }

  /** Zoom by a factor (< 1: closer) and keep the time under x where it is. */
  zoomAt(x: number, factor: number): void {
    const anchor = this.timeAt(x);
    this.nsPerPx = Math.min(this.maxNsPerPx, Math.max(CLOSEST_NS_PER_PX, this.nsPerPx * factor));
    this.t0 = anchor - x * this.nsPerPx;
    this.clamp();
  }

  /** Move the view by pixels. */
  pan(dx: number, dy: number): void {
    this.t0 += dx * this.nsPerPx;
    this.scrollY += dy;
    this.clamp();
  }

  timeAt(x: number): number {
    return this.t0 + x * this.nsPerPx;
  }

  xAt(time: number): number {
    return (time - this.t0) / this.nsPerPx;
  }

  /** Bring a range into view with as little movement as possible. Zoom out only if the range does not fit. */
  revealTimes(start: number, end: number): void {
    const margin = this.width * this.nsPerPx * 0.1;
    if (end - start > this.t1 - this.t0 - 2 * margin) this.show(start, end, 0.2);
    else if (start < this.t0 + margin) this.t0 = start - margin;
    else if (end > this.t1 - margin) this.t0 += end - this.t1 + margin;
    this.clamp();
  }

  /** Scroll as little as possible until a row is in view. Pinned lanes hide `covered` pixels at the top. */
  revealRow(top: number, bottom: number, covered = 0): void {
    if (top < this.scrollY + covered) this.scrollY = top - covered - 8;
    else if (bottom > this.scrollY + this.height) this.scrollY = bottom - this.height + 8;
    this.clamp();
  }

  private clamp(): void {
    this.nsPerPx = Math.min(this.maxNsPerPx, Math.max(CLOSEST_NS_PER_PX, this.nsPerPx));
    const margin = Math.min(this.durationNs, this.width * this.nsPerPx) * FIT_MARGIN;
    const minT0 = -this.before - margin;
    const maxT0 = this.durationNs + this.behind + margin - this.width * this.nsPerPx;
    this.t0 = Math.max(minT0, Math.min(this.t0, Math.max(minT0, maxT0)));
    this.scrollY = Math.max(0, Math.min(this.scrollY, this.maximalScroll));
  }
}
