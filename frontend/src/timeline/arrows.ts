/** Dependency arrows of the selected op: where they begin and end on the screen. */
import type { NodeDetail } from "@/client/messages";
import { topOfRow, type Layout } from "./layout";
import type { TimelineModel } from "./model";
import type { Viewport } from "./viewport";

/** More arrows would be hard to tell apart; the details list all dependencies. */
export const MAX_ARROWS = 200;

export interface Dependency {
  from: number;
  to: number;
  direction: "input" | "consumer";
}

export interface Arrow {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
  direction: "input" | "consumer";
}

/** Return a node's dependencies as pairs of slices. Nodes without a slice are left out. */
export function dependenciesOf(model: TimelineModel, detail: NodeDetail): Dependency[] {
  const self = model.sliceOf(detail.node);
  if (self < 0) return [];
  const sliceOf = (node: number): number => (node < 0 ? -1 : model.sliceOf(node));
  const inputs = [...detail.inputs, ...detail.control_inputs].map((ref): Dependency => ({
    from: sliceOf(ref.node),
    to: self,
    direction: "input",
  }));
  const consumers = detail.consumers.map((ref): Dependency => ({
    from: self,
    to: sliceOf(ref.node),
    direction: "consumer",
  }));
  return [...inputs, ...consumers].filter(({ from, to }) => from >= 0 && to >= 0).slice(0, MAX_ARROWS);
}

/** Return the y of the middle of a slice's row, below the ruler; NaN if its lane is not shown. */
export function middleOfSlice(model: TimelineModel, layout: Layout, viewport: Viewport, slice: number): number {
  const row = model.rowOf(slice);
  const top = topOfRow(layout.bands, row);
  const band = layout.bands.find(({ lane }) => row >= lane.first_row && row < lane.first_row + lane.rows);
  if (band === undefined) return NaN;
  const shift = layout.screenTop(band, viewport.scrollY, viewport.height) - band.top;
  return top + shift + band.rowHeight / 2;
}

export function arrowsOf(
  model: TimelineModel,
  layout: Layout,
  viewport: Viewport,
  dependencies: readonly Dependency[],
): Arrow[] {
  const arrows: Arrow[] = [];
  for (const { from, to, direction } of dependencies) {
    const y0 = middleOfSlice(model, layout, viewport, from);
    const y1 = middleOfSlice(model, layout, viewport, to);
    if (Number.isNaN(y0) || Number.isNaN(y1)) continue;
    arrows.push({ x0: viewport.xAt(model.end(from)), y0, x1: viewport.xAt(model.start[to]), y1, direction });
  }
  return arrows;
}
