/** Turns pointer, wheel and touch events on the canvas into gestures. Knows nothing of traces. */

/** Coordinates are CSS pixels within the canvas. */
export interface Gestures {
  zoom(x: number, factor: number): void;
  pan(dx: number, dy: number): void;
  hover(x: number, y: number): void;
  leave(): void;
  click(x: number, y: number): void;
  doubleClick(x: number, y: number): void;
  /** A range is being drawn from x0 to x1. */
  range(x0: number, x1: number, done: boolean): void;
  /** Whether the plain wheel scrolls lanes; if not, it zooms. */
  scrolls(): boolean;
  moving(on: boolean): void;
}

/** A press that moves by at most this many pixels is a click. */
const CLICK_SLOP = 4;
/** Zoom for each pixel of the wheel, in e-folds. A notch of a wheel is about 100 pixels; a pinch sends many steps of about 3. */
const WHEEL_ZOOM = 0.0018;
const PINCH_ZOOM = 0.012;
const LINE_PX = 32;

interface Press {
  id: number;
  x: number;
  y: number;
  lastX: number;
  lastY: number;
  mode: "press" | "pan" | "range";
}

export class PointerGestures {
  private press: Press | null = null;
  private readonly touches = new Map<number, { x: number; y: number }>();
  private readonly aborter = new AbortController();

  constructor(
    private readonly element: HTMLElement,
    private readonly gestures: Gestures,
    private readonly rulerHeight: number,
  ) {
    const { signal } = this.aborter;
    element.addEventListener("wheel", (event) => this.wheel(event), { signal, passive: false });
    element.addEventListener("pointerdown", (event) => this.down(event), { signal });
    element.addEventListener("pointermove", (event) => this.move(event), { signal });
    element.addEventListener("pointerup", (event) => this.up(event), { signal });
    element.addEventListener("pointercancel", (event) => this.up(event), { signal });
    element.addEventListener("pointerleave", () => gestures.leave(), { signal });
    element.addEventListener("dblclick", (event) => gestures.doubleClick(event.offsetX, event.offsetY), { signal });
  }

  dispose(): void {
    this.aborter.abort();
  }

  private wheel(event: WheelEvent): void {
    event.preventDefault();
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PX : 1;
    const dx = event.deltaX * unit;
    const dy = event.deltaY * unit;
    if (event.ctrlKey || event.metaKey) {
      const pinch = Math.abs(dy) < 50;
      this.gestures.zoom(event.offsetX, Math.exp(dy * (pinch ? PINCH_ZOOM : WHEEL_ZOOM)));
    } else if (event.shiftKey) this.gestures.pan(dx + dy, 0);
    else if (Math.abs(dx) > Math.abs(dy)) this.gestures.pan(dx, 0);
    else if (this.gestures.scrolls()) this.gestures.pan(0, dy);
    else this.gestures.zoom(event.offsetX, Math.exp(dy * WHEEL_ZOOM));
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0 && event.button !== 1) return;
    this.element.setPointerCapture(event.pointerId);
    if (event.pointerType === "touch") this.touches.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (this.touches.size > 1) {
      this.press = null;
      return;
    }
    const { offsetX: x, offsetY: y } = event;
    this.gestures.leave();
    const mode = event.shiftKey || y < this.rulerHeight ? "range" : "press";
    this.press = { id: event.pointerId, x, y, lastX: x, lastY: y, mode };
  }

  private move(event: PointerEvent): void {
    if (this.touches.size > 1) this.pinch(event);
    else if (this.press === null) this.gestures.hover(event.offsetX, event.offsetY);
    else if (this.press.id === event.pointerId) this.drag(this.press, event);
  }

  private drag(press: Press, { offsetX: x, offsetY: y }: PointerEvent): void {
    const moved = Math.hypot(x - press.x, y - press.y) > CLICK_SLOP;
    if (press.mode === "press" && moved) {
      press.mode = "pan";
      this.gestures.moving(true);
      this.gestures.leave();
    }
    if (press.mode === "pan") this.gestures.pan(press.lastX - x, press.lastY - y);
    else if (press.mode === "range" && moved) this.gestures.range(press.x, x, false);
    press.lastX = x;
    press.lastY = y;
  }

  private up(event: PointerEvent): void {
    this.touches.delete(event.pointerId);
    const press = this.press;
    if (press === null || press.id !== event.pointerId) return;
    this.press = null;
    if (event.type === "pointercancel") return;
    const moved = Math.hypot(event.offsetX - press.x, event.offsetY - press.y) > CLICK_SLOP;
    if (press.mode === "range" && moved) this.gestures.range(press.x, event.offsetX, true);
    else if (press.mode === "pan") this.gestures.moving(false);
    else if (press.y >= this.rulerHeight) this.gestures.click(event.offsetX, event.offsetY);
  }

  /** Handle two fingers: a change of their distance zooms about their middle, and the movement of their middle pans. */
  private pinch(event: PointerEvent): void {
    const mine = this.touches.get(event.pointerId);
    const other = [...this.touches].find(([id]) => id !== event.pointerId)?.[1];
    if (mine === undefined || other === undefined) return;
    const before = Math.abs(mine.x - other.x);
    const after = Math.abs(event.offsetX - other.x);
    this.gestures.pan((mine.x - event.offsetX) / 2, (mine.y - event.offsetY) / 2);
    if (before > 10 && after > 10) this.gestures.zoom((event.offsetX + other.x) / 2, before / after);
    mine.x = event.offsetX;
    mine.y = event.offsetY;
  }
}
