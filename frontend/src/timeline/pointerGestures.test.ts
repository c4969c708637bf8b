import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { HeldKeys } from "./heldKeys";
import { PointerGestures, type Gestures } from "./pointerGestures";

const RULER = 28;
let element: HTMLElement;
let gestures: { [name in keyof Gestures]: ReturnType<typeof vi.fn> };
let pointer: PointerGestures;

beforeEach(() => {
  element = document.createElement("div");
  element.setPointerCapture = vi.fn();
  const names = ["zoom", "pan", "hover", "leave", "click", "doubleClick", "range", "scrolls", "moving"] as const;
  gestures = Object.fromEntries(names.map((name) => [name, vi.fn()])) as typeof gestures;
  pointer = new PointerGestures(element, gestures as unknown as Gestures, RULER);
});
afterEach(() => pointer.dispose());

/** Send an event at a place of the element. Browsers compute the offsets; here they are set. */
function send(type: string, x: number, y: number, more: object = {}): Event {
  const event = new Event(type, { cancelable: true });
  const plain = { button: 0, pointerId: 1, pointerType: "mouse", shiftKey: false, ctrlKey: false, metaKey: false };
  for (const [key, value] of Object.entries({ ...plain, deltaX: 0, deltaY: 0, deltaMode: 0, ...more })) {
    Object.defineProperty(event, key, { value });
  }
  Object.defineProperties(event, { offsetX: { value: x }, offsetY: { value: y } });
  element.dispatchEvent(event);
  return event;
}
const touch = (id: number): object => ({ pointerId: id, pointerType: "touch" });

describe("the wheel", () => {
  it("zooms at the pointer where there is nothing to scroll, and never scrolls the page", () => {
    const event = send("wheel", 120, 60, { deltaY: -100 });
    const [x, factor] = gestures.zoom.mock.calls[0] as [number, number];
    expect([x, factor < 1, event.defaultPrevented]).toEqual([120, true, true]);
  });

  it("scrolls the lanes where some are out of view", () => {
    gestures.scrolls.mockReturnValue(true);
    send("wheel", 120, 60, { deltaY: 100 });
    expect(gestures.pan.mock.calls).toEqual([[0, 100]]);
  });

  it("zooms with Ctrl, as a pinch on a touchpad does, and pans with Shift or sideways", () => {
    gestures.scrolls.mockReturnValue(true);
    send("wheel", 50, 60, { deltaY: 3, ctrlKey: true });
    expect(gestures.zoom.mock.calls[0]?.[1]).toBeGreaterThan(1);
    send("wheel", 50, 60, { deltaY: 40, shiftKey: true });
    send("wheel", 50, 60, { deltaX: -30, deltaY: 4 });
    expect(gestures.pan.mock.calls).toEqual([
      [40, 0],
      [-30, 0],
    ]);
  });

  it("converts lines to pixels if the browser counts lines", () => {
    send("wheel", 50, 60, { deltaX: 2, deltaMode: WheelEvent.DOM_DELTA_LINE });
    expect(gestures.pan.mock.calls).toEqual([[64, 0]]);
  });
});

describe("a press", () => {
  it("that hardly moves is a click", () => {
    send("pointerdown", 100, 60);
    send("pointermove", 102, 61);
    send("pointerup", 102, 61);
    expect(gestures.click.mock.calls).toEqual([[102, 61]]);
    expect(gestures.pan).not.toHaveBeenCalled();
  });

  it("that moves pans, and clicks nothing", () => {
    send("pointerdown", 100, 60);
    send("pointermove", 90, 80);
    send("pointermove", 70, 80);
    send("pointerup", 70, 80);
    expect(gestures.pan.mock.calls).toEqual([
      [10, -20],
      [20, 0],
    ]);
    expect(gestures.moving.mock.calls).toEqual([[true], [false]]);
    expect(gestures.click).not.toHaveBeenCalled();
  });

  it.each([
    ["on the ruler", 10, {}],
    ["with Shift", 90, { shiftKey: true }],
  ])("%s draws a range", (_, y, more) => {
    send("pointerdown", 100, y, more);
    send("pointermove", 160, y);
    send("pointerup", 180, y);
    expect(gestures.range.mock.calls).toEqual([
      [100, 160, false],
      [100, 180, true],
    ]);
  });

  it("on the ruler without moving does nothing", () => {
    send("pointerdown", 100, 10);
    send("pointerup", 100, 10);
    expect(gestures.click).not.toHaveBeenCalled();
    expect(gestures.range).not.toHaveBeenCalled();
  });

  it("that the browser cancels does nothing, nor does the right button", () => {
    send("pointerdown", 100, 60);
    send("pointercancel", 100, 60);
    send("pointerdown", 100, 60, { button: 2 });
    send("pointerup", 100, 60);
    expect(gestures.click).not.toHaveBeenCalled();
  });

  it("twice is a double click", () => {
    send("dblclick", 30, 40);
    expect(gestures.doubleClick.mock.calls).toEqual([[30, 40]]);
  });
});

describe("two fingers", () => {
  it("zoom by their distance, about their middle, and pan by their movement; they select nothing", () => {
    send("pointerdown", 100, 60, touch(1));
    send("pointerdown", 200, 60, touch(2));
    send("pointermove", 300, 60, touch(2));
    expect(gestures.zoom.mock.calls).toEqual([[200, 0.5]]);
    expect(gestures.pan.mock.calls).toEqual([[-50, 0]]);
    send("pointerup", 300, 60, touch(2));
    send("pointerup", 100, 60, touch(1));
    expect(gestures.click).not.toHaveBeenCalled();
  });
});

describe("held keys", () => {
  it("move at once, then each frame for as long as they are held", () => {
    const frames: FrameRequestCallback[] = [];
    vi.stubGlobal("requestAnimationFrame", (work: FrameRequestCallback) => frames.push(work));
    vi.stubGlobal("cancelAnimationFrame", vi.fn());
    const apply = vi.fn();
    const keys = new HeldKeys(apply);
    expect(keys.down("q")).toBe(false);
    expect(keys.down("D")).toBe(true);
    expect(apply).toHaveBeenCalledOnce();
    keys.down("D"); // the keyboard repeats it
    expect(apply).toHaveBeenCalledOnce();
    frames.shift()?.(performance.now() + 16);
    expect(apply).toHaveBeenCalledTimes(2);
    expect(apply.mock.calls.every(([zoom, pan]) => zoom === 0 && (pan as number) > 0)).toBe(true);
    keys.up("d");
    frames.shift()?.(performance.now() + 32);
    expect(apply).toHaveBeenCalledTimes(2);
    expect(frames).toHaveLength(0);
    vi.unstubAllGlobals();
  });
});
