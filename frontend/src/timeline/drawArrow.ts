/** Draws a curved arrow from one slice to another. */
import type { Arrow } from "./arrows";
import { css, type Theme } from "./colours";

export function drawArrow(context: CanvasRenderingContext2D, theme: Theme, { x0, y0, x1, y1, direction }: Arrow): void {
  const bend = Math.min(80, Math.max(14, Math.abs(x1 - x0) * 0.4));
  for (const [style, width] of [
    [css(theme.background), 4],
    [direction === "input" ? theme.inputArrow : theme.consumerArrow, 1.5],
  ] as const) {
    context.strokeStyle = context.fillStyle = style;
    context.lineWidth = width;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1);
    context.stroke();
  }
  context.beginPath();
  context.moveTo(x1, y1);
  context.lineTo(x1 - 7, y1 - 4);
  context.lineTo(x1 - 7, y1 + 4);
  context.fill();
}
