/** Dims what is before and after the step, on a timeline that shows more than the step. */
import { css, type Theme } from "./colours";
import type { Viewport } from "./viewport";

export function drawStepEnds(context: CanvasRenderingContext2D, viewport: Viewport, theme: Theme): void {
  if (!viewport.reachesBeyond) return;
  const left = Math.min(viewport.xAt(0), viewport.width);
  const right = Math.max(viewport.xAt(viewport.durationNs), 0);
  context.globalAlpha = 0.45;
  context.fillStyle = css(theme.background);
  if (left > 0) context.fillRect(0, 0, left, viewport.height);
  if (right < viewport.width) context.fillRect(right, 0, viewport.width - right, viewport.height);
  context.globalAlpha = 1;
}
