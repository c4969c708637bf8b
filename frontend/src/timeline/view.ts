/** One timeline on one canvas: ties viewport, layout, renderer and gestures together. */
import type { Bookmark } from "@/client/messages";
import type { Dependency } from "./arrows";
import { CanvasView } from "./canvasView";
import type { Theme } from "./colours";
import { NO_COUNTERS, type CounterBand, type CounterChoices } from "./counterLayout";
import type { CounterSeries } from "./counters";
import { HeldKeys } from "./heldKeys";
import { PointerGestures } from "./pointerGestures";
import { bandOfRow, Layout, NO_CHOICES, rowAt, topOfRow, type LaneChoices } from "./layout";
import type { TimelineModel } from "./model";
import { Renderer, RULER_HEIGHT, type Overlay } from "./renderer";
import { Viewport } from "./viewport";

/** A pointer points at a narrow slice if it is at most this many pixels beside the slice. */
const REACH = 3;
/** In windows of at least this many pixels, lane headers are beside the lanes; in narrower windows they are above them. */
const WIDE_WINDOW = 720;

/** What the timeline shows, and how. */
export interface Look {
  readonly theme: Theme;
  readonly shade: Uint8Array;
  readonly choices: LaneChoices;
  readonly counters: readonly CounterSeries[];
  readonly counterChoices: CounterChoices;
  /** The selected slice, -1: none. */
  readonly selected: number;
  readonly dependencies: readonly Dependency[];
  readonly bookmarks: readonly Bookmark[];
  readonly range: readonly [number, number] | null;
  readonly idle: boolean;
}

/** Return a look in which nothing is selected, marked or rearranged. */
export function plainLook(theme: Theme, shade: Uint8Array): Look {
  return {
    theme,
    shade,
    choices: NO_CHOICES,
    counters: [],
    counterChoices: NO_COUNTERS,
    bookmarks: [],
    selected: -1,
    dependencies: [],
    range: null,
    idle: false,
  };
}

/** A part of the trace, as the URL stores it. */
export interface Place {
  /** Null: the whole step. */
  readonly times: readonly [number, number] | null;
  /** The first row in view, null: the lanes are not scrolled. */
  readonly row: number | null;
}

/** The events of the view. Coordinates are CSS pixels within the canvas. */
export interface ViewEvents {
  hover(slice: number, x: number, y: number): void;
  select(slice: number): void;
  range(range: readonly [number, number] | null, done: boolean): void;
  /** The view moved, or its size or layout changed: lane headers, minimap and URL follow. */
  moved(): void;
  painted(): void;
}

export class TimelineView extends CanvasView {
  readonly viewport: Viewport;
  readonly renderer: Renderer;
  readonly keys: HeldKeys;
  layout: Layout;
  private pointer: number | null = null;
  private readonly overlay: Overlay;
  private readonly pointerGestures: PointerGestures;
  private strip = false;
  private glideFrame = 0;
  /** Where the current movement ends; null while the view does not move. */
  private target: Viewport | null = null;

  /** `start`: the part that is shown first. */
  constructor(
    canvas: HTMLCanvasElement,
    readonly model: TimelineModel,
    private look: Look,
    private readonly events: ViewEvents,
    private start: Place | null = null,
  ) {
    super(canvas);
    const { theme, shade, choices, selected, dependencies, range, idle } = look;
    this.overlay = { selected, dependencies, range, idle, cursor: null };
    this.viewport = new Viewport(model.durationNs, ...model.reach);
    this.renderer = new Renderer(canvas, model, theme, shade);
    this.takeData(look);
    this.layout = new Layout(model.lanes, choices, false);
    this.keys = new HeldKeys((zoom, pan) => this.move(zoom, pan));
    this.pointerGestures = new PointerGestures(canvas, this.gestures(), RULER_HEIGHT);
  }

  override dispose(): void {
    super.dispose();
    this.pointerGestures.dispose();
    this.keys.release();
    this.stopGliding();
  }

  // ------------------------------------------------------------------------------------------------------------ public

  /** Apply what differs from the previous look. */
  setLook(look: Look): void {
    const before = this.look;
    this.look = look;
    if (look.theme !== before.theme) this.renderer.theme = look.theme;
    if (look.shade !== before.shade) this.renderer.index.update(look.shade);
    if (look.range !== before.range) this.overlay.range = look.range; // else keep the range that is being drawn
    Object.assign(this.overlay, { selected: look.selected, dependencies: look.dependencies, idle: look.idle });
    this.takeData(look);
    if (look.choices !== before.choices || look.counterChoices !== before.counterChoices) this.arrange();
    // after Back or Forward, the row of the selected slice may be scrolled away
    if (look.selected !== before.selected && look.selected >= 0) this.keepInSight(look.selected);
    this.redraw();
  }

  private takeData(look: Look): void {
    this.renderer.counters = look.counters;
    this.renderer.bookmarks = look.bookmarks;
  }

  /** The time where the pointer was last, or the middle of the view if it was never there; clipped to the step. */
  get pointerNs(): number {
    const { t0, t1 } = this.viewport;
    return Math.min(this.model.durationNs, Math.max(0, this.pointer ?? (t0 + t1) / 2));
  }

  /** Bring a moment into the middle. Zooms in to at most a fifth of the step: a view of the whole step cannot move there. */
  centre(ns: number): void {
    const span = Math.min(this.viewport.t1 - this.viewport.t0, this.model.durationNs / 5);
    this.show(ns - span / 2, ns + span / 2, 0);
  }

  /** Remove the range that was drawn with the pointer. */
  clearRange(): void {
    this.overlay.range = null;
    this.redraw();
  }

  /** Show the time at the cursor in the other of two compared timelines; null: none. */
  setCursor(ns: number | null): void {
    this.overlay.cursor = ns;
    this.redraw();
  }

  /** Bring a slice into view, unless its lane is hidden. */
  reveal(slice: number): void {
    if (bandOfRow(this.layout.bands, this.model.rowOf(slice)) === undefined) return;
    // zoom in if the slice would be too small to see
    const end = this.model.end(slice);
    const length = end - this.model.start[slice];
    const target = this.copy();
    if (length / target.nsPerPx < 2) target.show(this.model.start[slice], end, 20);
    target.revealTimes(this.model.start[slice], end);
    this.revealRow(target, slice);
    this.glideTo(target);
  }

  /** Scroll to a slice's row if no part of it is visible. The times in view stay. */
  keepInSight(slice: number): void {
    if (this.inSight(slice)) return;
    this.revealRow(this.target ?? this.viewport, slice);
    this.changed();
  }

  /** Return whether a part of the slice's row is visible, or will be at the end of the current movement. */
  inSight(slice: number): boolean {
    const place = this.placeOf(slice);
    if (place === null) return true; // pinned or hidden: scrolling does not help
    const { scrollY, height } = this.target ?? this.viewport;
    return place.bottom > scrollY + this.layout.stickyHeight(height) && place.top < scrollY + height;
  }

  /** The visible part of the trace. */
  get place(): Place {
    const { viewport } = this;
    const times = viewport.fitted ? null : ([Math.max(0, viewport.t0), viewport.t1] as const);
    return { times, row: viewport.scrollY > 0 ? this.firstRow() : null };
  }

  /** Return the first row that is fully visible below the pinned lanes. It stands for the scroll position in the URL. */
  firstRow(): number {
    const { scrollY, height } = this.viewport;
    const top = scrollY + this.layout.stickyHeight(height);
    const band = this.layout.bands.find((each) => !each.pinned && each.rowsTop + each.rowHeight * each.lane.rows > top);
    if (band === undefined) return 0;
    return band.lane.first_row + Math.max(0, Math.ceil((top - band.rowsTop) / band.rowHeight - 0.01));
  }

  scrollToRow(row: number): void {
    const band = bandOfRow(this.layout.bands, row);
    if (band === undefined) return;
    const top = band.lane.first_row === row ? band.top : topOfRow(this.layout.bands, row);
    const viewport = this.target ?? this.viewport;
    viewport.scrollY = top - this.layout.stickyHeight(viewport.height);
    viewport.pan(0, 0);
    this.changed();
  }

  show(start: number, end: number, margin = 0.05): void {
    const target = this.copy();
    target.show(start, end, margin);
    this.glideTo(target);
  }

  fit(): void {
    const target = this.copy();
    target.fit();
    this.glideTo(target);
  }

  jump(start: number, end: number): void {
    this.viewport.show(start, end, 0);
    this.changed();
  }

  /** Zoom (in e-folds) about the middle, or pan (in view widths). */
  move(zoom: number, pan: number): void {
    this.stopGliding();
    if (zoom !== 0) this.viewport.zoomAt(this.viewport.width / 2, Math.exp(zoom));
    if (pan !== 0) this.viewport.pan(pan * this.viewport.width, 0);
    this.changed();
  }

  scroll(dy: number): void {
    this.viewport.pan(0, dy);
    this.changed();
  }

  /** Return the slice under a point; -1 if there is none. Of several narrow slices, the one whose colour is drawn. */
  sliceAt(x: number, y: number): number {
    const { viewport, model } = this;
    if (y < RULER_HEIGHT) return -1;
    const content = this.layout.contentY(y - RULER_HEIGHT, viewport.scrollY, viewport.height);
    const row = rowAt(this.layout.bands, content);
    if (row < 0) return -1;
    const to = model.rowOffsets[row + 1];
    const reach = REACH * viewport.nsPerPx;
    const time = viewport.timeAt(x);
    const exact = model.firstEndingAfter(row, time);
    if (exact < to && model.start[exact] <= time && model.duration[exact] > reach) {
      return this.renderer.index.isHidden(exact) ? -1 : exact;
    }
    const from = model.firstEndingAfter(row, time - reach);
    const end = model.firstStartingAt(row, time + reach);
    if (from >= end) return -1;
    const best = this.renderer.index.heaviest(from, end);
    return this.renderer.index.isHidden(best) ? -1 : best;
  }

  /** Return the counter at a y of the canvas. */
  counterAt(y: number): CounterBand | undefined {
    const { scrollY, height } = this.viewport;
    if (y < RULER_HEIGHT + this.layout.stickyHeight(height)) return undefined;
    const content = y - RULER_HEIGHT + scrollY;
    return this.layout.counters.find(({ plotTop, plotHeight }) => content >= plotTop && content < plotTop + plotHeight);
  }

  /** Return a slice's rectangle on the canvas, which may be scrolled out of view; null if its lane is hidden. */
  rectOf(slice: number): { left: number; top: number; width: number; height: number } | null {
    const row = this.model.rowOf(slice);
    const band = bandOfRow(this.layout.bands, row);
    if (band === undefined) return null;
    const shift = this.layout.screenTop(band, this.viewport.scrollY, this.viewport.height) - band.top;
    const left = Math.max(0, this.viewport.xAt(this.model.start[slice]));
    const right = Math.min(this.viewport.width, this.viewport.xAt(this.model.end(slice)));
    const top = RULER_HEIGHT + topOfRow(this.layout.bands, row) + shift;
    return { left, top, width: Math.max(2, right - left), height: Math.max(2, band.rowHeight - 1) };
  }

  // ---------------------------------------------------------------------------------------------------------- internal

  protected override draw(): void {
    this.renderer.draw(this.viewport, this.layout, this.overlay, this.ratio);
    this.events.painted();
  }

  /** Adapt to the new size. A selected slice that was in sight stays in sight. */
  protected override resized(): void {
    const { selected } = this.overlay;
    const isFirst = this.viewport.width <= 1;
    const keep = selected >= 0 && (isFirst || this.inSight(selected));
    for (const viewport of [this.viewport, this.target]) viewport?.resize(this.width, this.height - RULER_HEIGHT);
    this.strip = window.innerWidth < WIDE_WINDOW;
    this.arrange();
    if (this.start?.times) this.jump(...this.start.times);
    if (typeof this.start?.row === "number") this.scrollToRow(this.start.row);
    this.start = null;
    if (keep) this.keepInSight(selected);
  }

  private arrange(): void {
    const { choices, counterChoices } = this.look;
    this.layout = new Layout(this.model.lanes, choices, this.strip, this.viewport.height, counterChoices);
    for (const viewport of [this.viewport, this.target]) {
      if (viewport === null) continue;
      viewport.contentHeight = this.layout.height;
      viewport.pan(0, 0);
    }
    this.changed();
  }

  private changed(): void {
    this.events.moved();
    this.redraw();
  }

  /** Return the place of a slice's row in the scrolled content; null for a pinned or hidden row, which does not scroll. */
  private placeOf(slice: number): { top: number; bottom: number } | null {
    const row = this.model.rowOf(slice);
    const band = bandOfRow(this.layout.bands, row);
    if (band === undefined || (band.pinned && this.layout.stickyHeight(this.viewport.height) > 0)) return null;
    const top = topOfRow(this.layout.bands, row);
    return { top, bottom: top + Math.max(band.rowHeight, 20) };
  }

  private revealRow(target: Viewport, slice: number): void {
    const place = this.placeOf(slice);
    if (place !== null) target.revealRow(place.top, place.bottom, this.layout.stickyHeight(target.height));
  }

  private copy(): Viewport {
    return Object.assign(new Viewport(this.model.durationNs), this.viewport);
  }

  private stopGliding(): void {
    cancelAnimationFrame(this.glideFrame);
    this.target = null;
  }

  /** Move to another view in a fifth of a second, so that the eye can follow; at once if the user prefers no motion. */
  private glideTo(target: Viewport): void {
    this.stopGliding();
    this.target = target;
    const from = { t0: this.viewport.t0, span: this.viewport.nsPerPx, scrollY: this.viewport.scrollY };
    const begin = performance.now();
    const length = matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 180;
    const step = (now: number): void => {
      const linear = length === 0 ? 1 : Math.min(1, Math.max(0, now - begin) / length);
      const share = 1 - (1 - linear) ** 3;
      const blend = (a: number, b: number): number => a + (b - a) * share;
      this.viewport.t0 = linear === 1 ? target.t0 : blend(from.t0, target.t0);
      this.viewport.nsPerPx = linear === 1 ? target.nsPerPx : blend(from.span, target.nsPerPx);
      this.viewport.scrollY = blend(from.scrollY, target.scrollY);
      if (linear === 1) this.target = null;
      this.changed();
      if (linear < 1) this.glideFrame = requestAnimationFrame(step);
    };
    step(begin);
  }

  private gestures(): ConstructorParameters<typeof PointerGestures>[1] {
    const stop = (): void => this.stopGliding();
    return {
      zoom: (x, factor) => {
        stop();
        this.viewport.zoomAt(x, factor);
        this.changed();
      },
      pan: (dx, dy) => {
        stop();
        this.viewport.pan(dx, dy);
        this.changed();
      },
      hover: (x, y) => {
        this.pointer = this.viewport.timeAt(x);
        this.events.hover(this.sliceAt(x, y), x, y);
      },
      leave: () => this.events.hover(-1, 0, 0),
      click: (x, y) => this.events.select(this.sliceAt(x, y)),
      doubleClick: (x, y) => {
        const slice = this.sliceAt(x, y);
        if (slice >= 0) this.show(this.model.start[slice], this.model.end(slice), 0.5);
      },
      range: (x0, x1, done) => {
        const clip = (x: number): number => Math.min(this.model.durationNs, Math.max(0, this.viewport.timeAt(x)));
        this.overlay.range = [clip(Math.min(x0, x1)), clip(Math.max(x0, x1))];
        this.events.range(this.overlay.range, done);
        this.redraw();
      },
      scrolls: () => this.viewport.maximalScroll > 0,
      moving: (on) => this.canvas.classList.toggle("moving", on),
    };
  }
}
