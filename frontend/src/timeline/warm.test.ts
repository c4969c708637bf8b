import { afterEach, describe, expect, it, vi } from "vitest";
import { stubCanvas } from "../../dev/canvas";
import { warm } from "./warm";

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
});

describe("warming up", () => {
  it("draws slices, their labels and a ruler where nobody sees it, and leaves nothing behind", () => {
    const { texts } = stubCanvas();
    const frames = vi.spyOn(globalThis, "requestAnimationFrame");
    const cancelled = vi.spyOn(globalThis, "cancelAnimationFrame");
    warm();
    expect(texts).toContain("63"); // of name/63 its last component fits
    expect(texts.some((text) => /µs|ns/.test(text))).toBe(true);
    expect(document.body.childElementCount).toBe(0);
    const pending = frames.mock.results.map((each) => each.value as number);
    expect(pending.every((frame) => cancelled.mock.calls.some(([ended]) => ended === frame))).toBe(true);
  });
});
