/** Finds the slice to select next with the keys: along a row in time, or on another row at about the same time. */
import { Shade } from "./colours";
import { bandOfRow, type Layout } from "./layout";
import type { TimelineModel } from "./model";

/** Return the next visible slice of the same row; -1 at its end. */
export function alongRow(model: TimelineModel, shade: Uint8Array, slice: number, step: 1 | -1): number {
  const row = model.rowOf(slice);
  for (let i = slice + step; i >= model.rowOffsets[row] && i < model.rowOffsets[row + 1]; i += step) {
    if (shade[i] !== Shade.HIDDEN) return i;
  }
  return -1;
}

/** Return the slice nearest in time on the next row (in screen order) that has a visible slice; -1 if there is none. */
export function acrossRows(
  model: TimelineModel,
  shade: Uint8Array,
  layout: Layout,
  slice: number,
  step: 1 | -1,
): number {
  const rows = layout.bands.flatMap(({ lane }) => Array.from({ length: lane.rows }, (_, r) => lane.first_row + r));
  const middle = model.start[slice] + model.duration[slice] / 2;
  for (let at = rows.indexOf(model.rowOf(slice)) + step; at >= 0 && at < rows.length; at += step) {
    const slice = nearest(model, shade, rows[at], middle);
    if (slice >= 0) return slice;
  }
  return -1;
}

function nearest(model: TimelineModel, shade: Uint8Array, row: number, time: number): number {
  const from = model.rowOffsets[row];
  const to = model.rowOffsets[row + 1];
  const here = model.firstEndingAfter(row, time);
  let after = here;
  while (after < to && shade[after] === Shade.HIDDEN) after++;
  let before = Math.min(here, to) - 1;
  while (before >= from && shade[before] === Shade.HIDDEN) before--;
  if (after >= to) return before >= from ? before : -1;
  if (before < from) return after;
  return model.start[after] - time <= time - model.end(before) ? after : before;
}

/** Return the slice to select if none is selected: the first visible slice that starts at or after `startNs`. */
export function firstInView(model: TimelineModel, shade: Uint8Array, layout: Layout, startNs: number): number {
  for (const { lane } of layout.bands) {
    for (let row = lane.first_row; row < lane.first_row + lane.rows; row++) {
      for (let i = model.firstStartingAt(row, startNs); i < model.rowOffsets[row + 1]; i++) {
        if (shade[i] !== Shade.HIDDEN && bandOfRow(layout.bands, row) !== undefined) return i;
      }
    }
  }
  return -1;
}
