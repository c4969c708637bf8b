/** Paints the minimap: the whole trace in a strip, without repeats and without work outside the step. */
import { pack, Palette, type Theme } from "./colours";
import type { Layout } from "./layout";
import { RowPainter, type LevelIndex } from "./levelOfDetail";
import type { TimelineModel } from "./model";

/** Paint the shown rows over the whole duration into a canvas of width x height device pixels. */
export function paintMinimap(
  canvas: HTMLCanvasElement,
  model: TimelineModel,
  index: LevelIndex,
  slots: Uint8Array,
  theme: Theme,
  layout: Layout,
): void {
  const context = canvas.getContext("2d", { alpha: false });
  if (context === null) return;
  const { width, height } = canvas;
  const rows = sampledRows(layout, height);
  const image = new ImageData(width, height);
  const pixels = new Uint32Array(image.data.buffer);
  const palette = new Palette(theme);
  pixels.fill(pack(theme.lane));
  const colours = { slots, pixels: palette.pixels, edges: palette.edges };
  const painter = new RowPainter(model, index, colours, pixels, width, 0, model.durationNs / width);
  rows.forEach((row, k) => {
    const from = Math.round((k * height) / rows.length);
    const to = Math.round(((k + 1) * height) / rows.length);
    painter.paint(row, from * width);
    for (let y = from + 1; y < to; y++) pixels.copyWithin(y * width, from * width, (from + 1) * width);
  });
  context.putImageData(image, 0, 0);
}

/** Return the rows in the lanes' order; an even selection if there are more rows than lines. */
function sampledRows(layout: Layout, lines: number): number[] {
  const rows = layout.bands
    .filter(({ lane }) => lane.kind !== "repeat" && lane.kind !== "outside")
    .flatMap(({ lane }) => Array.from({ length: lane.rows }, (_, r) => lane.first_row + r));
  if (rows.length <= lines) return rows;
  return Array.from({ length: lines }, (_, k) => rows[Math.floor((k * rows.length) / lines)]);
}
