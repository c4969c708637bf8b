/** Bookmarks on the ruler: a flag with its name at each, a line down the lanes, a bar along a range. */
import type { Bookmark } from "@/client/messages";
import { css, type Theme } from "./colours";
import type { TextFitter } from "./text";
import type { Viewport } from "./viewport";

// CSS pixels
const MAX_NAME_WIDTH = 140;
const PADDING = 5;
const FLAG_HEIGHT = 15;

/** `ruler`: the ruler's height in CSS pixels. */
export function drawBookmarks(
  context: CanvasRenderingContext2D,
  viewport: Viewport,
  bookmarks: readonly Bookmark[],
  theme: Theme,
  fitter: TextFitter,
  ruler: number,
): void {
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (const { name, start_ns, end_ns } of bookmarks) {
    const left = viewport.xAt(start_ns);
    const right = end_ns === null ? left : viewport.xAt(end_ns);
    if (right < 0 || left > viewport.width) continue;
    context.fillStyle = theme.text;
    context.globalAlpha = 0.55;
    for (const x of end_ns === null ? [left] : [left, right])
      context.fillRect(Math.round(x), ruler, 1, viewport.height);
    context.globalAlpha = 1;
    const from = Math.max(0, left);
    context.fillRect(
      from,
      FLAG_HEIGHT,
      Math.max(1, Math.min(right, viewport.width) - from),
      end_ns === null ? ruler - FLAG_HEIGHT : 2,
    );
    const text = fitter.fit(name, MAX_NAME_WIDTH);
    const width = fitter.width(text) + 2 * PADDING;
    const x = Math.max(0, Math.min(from, viewport.width - width));
    context.fillRect(x, 0, width, FLAG_HEIGHT);
    context.fillStyle = css(theme.background);
    context.fillText(text, x + PADDING, FLAG_HEIGHT / 2 + 0.5);
  }
}
