import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { stubCanvas } from "../../dev/canvas";
import { Shade, THEMES } from "./colours";
import { modelOf, type TestLane } from "../../dev/timeline";
import { NO_CHOICES, topOfRow } from "./layout";
import { RULER_HEIGHT } from "./renderer";
import { plainLook, TimelineView, type Look } from "./view";

/** Return lanes of ten rows with one slice each: slice n is in row n. */
const tall = (lanes: number): TestLane[] =>
  Array.from({ length: lanes }, () => ({
    rows: Array.from({ length: 10 }, (_, row) => [{ start: row * 100, duration: 90, name: `n${row}` }]),
  }));
const nothing = (): void => undefined;
let view: TimelineView;
let look: Look;

function show(lanes: TestLane[], height = 200): TimelineView {
  const model = modelOf(...lanes);
  const events = { hover: nothing, select: vi.fn(), range: nothing, moved: nothing, painted: nothing };
  look = plainLook(THEMES.light, new Uint8Array(model.count).fill(Shade.NORMAL));
  view = new TimelineView(document.createElement("canvas"), model, look, events);
  view.resize(1000, height + RULER_HEIGHT);
  return view;
}

beforeEach(() => {
  stubCanvas();
  vi.stubGlobal("matchMedia", () => ({ matches: true })); // no motion: the view moves at once
});
afterEach(() => {
  view.dispose();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

describe("a row out of sight", () => {
  it("is scrolled to, and the times in view stay", () => {
    const { viewport } = show(tall(5));
    view.jump(200, 400);
    const times = [viewport.t0, viewport.t1];
    expect(view.inSight(45)).toBe(false);
    view.keepInSight(45);
    expect(view.inSight(45)).toBe(true);
    expect([viewport.t0, viewport.t1]).toEqual(times);
    const top = topOfRow(view.layout.bands, 45);
    expect(top).toBeGreaterThanOrEqual(viewport.scrollY);
    expect(top + 16).toBeLessThanOrEqual(viewport.scrollY + viewport.height);
  });

  it("moves nothing if it is in sight", () => {
    const { viewport } = show(tall(5));
    view.scroll(30);
    view.keepInSight(5);
    expect(viewport.scrollY).toBe(30);
  });

  it("is not hidden by pinned lanes, and pinned rows are not scrolled to", () => {
    const { viewport } = show(tall(5), 400);
    view.setLook({ ...look, choices: { ...NO_CHOICES, pinned: [4] } });
    const sticky = view.layout.stickyHeight(viewport.height);
    expect(sticky).toBeGreaterThan(100);
    view.scroll(1e6);
    view.keepInSight(0);
    expect(topOfRow(view.layout.bands, 0) - viewport.scrollY).toBeGreaterThanOrEqual(sticky);
    view.scroll(1e6);
    const bottom = viewport.scrollY;
    view.reveal(45);
    expect(viewport.scrollY).toBe(bottom);
  });

  it("is ignored if its lane is hidden", () => {
    const { viewport } = show(tall(2));
    view.setLook({ ...look, choices: { ...NO_CHOICES, hidden: new Set([1]) } });
    view.keepInSight(15);
    expect(viewport.scrollY).toBe(0);
  });
});

describe("how far the lanes are scrolled", () => {
  it("is kept as a row, which always leads back to the same place", () => {
    const { viewport } = show(tall(5));
    for (const way of [37, 160, 333, 1e6]) {
      viewport.scrollY = 0;
      view.scroll(way);
      view.scrollToRow(view.firstRow());
      const [row, place] = [view.firstRow(), viewport.scrollY];
      expect(Math.abs(place - Math.min(way, viewport.maximalScroll))).toBeLessThan(32);
      view.scrollToRow(row);
      expect([view.firstRow(), viewport.scrollY]).toEqual([row, place]);
    }
  });

  it("does not change for a row that does not exist", () => {
    const { viewport } = show(tall(5));
    view.scroll(50);
    view.scrollToRow(999);
    expect(viewport.scrollY).toBe(50);
  });
});

describe("a movement that is under way", () => {
  let frames: FrameRequestCallback[] = [];
  function untilItEnds(): void {
    for (let now = performance.now(); frames.length; now += 1000) frames.splice(0).forEach((frame) => frame(now));
  }
  beforeEach(() => {
    frames = [];
    vi.stubGlobal("matchMedia", () => ({ matches: false }));
    vi.stubGlobal("requestAnimationFrame", (frame: FrameRequestCallback) => frames.push(frame));
    vi.stubGlobal("cancelAnimationFrame", () => undefined);
  });

  it("ends with the selected slice in sight, whatever comes first: the selection, the range, or a smaller window", () => {
    const { viewport } = show(tall(5), 400);
    view.show(200, 400, 0);
    view.keepInSight(45);
    untilItEnds();
    expect(view.inSight(45)).toBe(true);
    view.scroll(-1e6);
    view.reveal(45);
    view.resize(500, 80 + RULER_HEIGHT);
    view.keepInSight(45);
    untilItEnds();
    expect(view.inSight(45)).toBe(true);
    expect(viewport.scrollY).toBeGreaterThan(0);
  });

  it("ends at the requested range although the window changed its width", () => {
    const { viewport } = show(tall(5));
    view.show(200, 400, 0);
    view.resize(600, 200 + RULER_HEIGHT);
    untilItEnds();
    expect([viewport.t0, viewport.t1].map(Math.round)).toEqual([200, 400]);
  });
});
