import { describe, expect, it } from "vitest";
import { Viewport } from "./viewport";

function view(duration = 1e6, width = 1000): Viewport {
  const viewport = new Viewport(duration);
  viewport.contentHeight = 2000;
  viewport.resize(width, 500);
  return viewport;
}

describe("Viewport", () => {
  it("begins fitted, with the trace's ends in view", () => {
    const viewport = view();
    expect(viewport.fitted).toBe(true);
    expect(viewport.t0).toBeLessThan(0);
    expect(viewport.t1).toBeGreaterThan(1e6);
  });

  it("keeps the time under the pointer when zooming", () => {
    const viewport = view();
    viewport.zoomAt(500, 0.1);
    const before = viewport.timeAt(320);
    viewport.zoomAt(320, 0.5);
    expect(viewport.timeAt(320)).toBeCloseTo(before, 6);
  });

  it("does not leave the trace, whatever is done", () => {
    const viewport = view();
    viewport.zoomAt(0, 1e-12);
    expect(viewport.nsPerPx).toBeGreaterThan(0);
    viewport.pan(-1e12, -1e9);
    expect([viewport.t0 >= -1e4, viewport.scrollY]).toEqual([true, 0]);
    viewport.pan(1e15, 1e9);
    expect([viewport.t1 <= 1.011e6, viewport.scrollY]).toEqual([true, 1500]);
    viewport.zoomAt(500, 1e12);
    expect(viewport.fitted).toBe(true);
  });

  it("keeps the times in view over a resize", () => {
    const viewport = view();
    viewport.show(2e5, 3e5, 0);
    viewport.resize(1700, 700);
    expect(viewport.t0).toBeCloseTo(2e5, 3);
    expect(viewport.t1).toBeCloseTo(3e5, 3);
  });

  it("reveals with as little movement as possible", () => {
    const viewport = view();
    viewport.show(2e5, 4e5, 0);
    viewport.revealTimes(2.5e5, 2.6e5);
    viewport.revealRow(10, 30);
    expect([viewport.t0, viewport.scrollY]).toEqual([expect.closeTo(2e5, 3), 0]);
    viewport.revealTimes(5e5, 5.1e5);
    expect(viewport.t1).toBeGreaterThan(5.1e5);
    expect(viewport.nsPerPx).toBeCloseTo(200, 6);
    viewport.revealRow(900, 920);
    expect(viewport.scrollY + viewport.height).toBeGreaterThanOrEqual(920);
    viewport.revealRow(600, 620, 100);
    expect(viewport.scrollY + 100).toBeLessThanOrEqual(600);
  });

  it("turns times into pixels and back", () => {
    const viewport = view();
    viewport.show(1000, 5000, 0);
    expect(viewport.timeAt(viewport.xAt(3210))).toBeCloseTo(3210, 6);
  });
});
