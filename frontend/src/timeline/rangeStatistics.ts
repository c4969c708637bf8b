/** Statistics of a range of time: counts and times by op type and by lane, clipped to the range. */
import { Shade } from "./colours";
import { isCounted, type TimelineModel } from "./model";

export interface RangeRow {
  key: string;
  count: number;
  totalNs: number;
}

export interface LaneRangeRow extends RangeRow {
  lane: number;
  /** Time in which any slice ran: overlapping slices count once. */
  busyNs: number;
}

export interface RangeStatistics {
  startNs: number;
  endNs: number;
  count: number;
  totalNs: number;
  byOp: RangeRow[];
  byLane: LaneRangeRow[];
  /** Number of repeats, and of slices outside the step, in the range: they are shown, but never added up. */
  repeats: number;
}

/** Return sums over the visible slices that touch startNs..endNs. Only the part of a slice inside the range counts. */
export function rangeStatistics(
  model: TimelineModel,
  shade: Uint8Array,
  startNs: number,
  endNs: number,
): RangeStatistics {
  const counts = new Uint32Array(model.ops.length);
  const totals = new Float64Array(model.ops.length);
  const byLane: LaneRangeRow[] = [];
  let repeats = 0;
  model.lanes.forEach((lane, index) => {
    const row: LaneRangeRow = { lane: index, key: lane.title, count: 0, totalNs: 0, busyNs: 0 };
    for (let r = lane.first_row; r < lane.first_row + lane.rows; r++) {
      for (let i = model.firstEndingAfter(r, startNs); i < model.rowOffsets[r + 1]; i++) {
        if (model.start[i] >= endNs) break;
        if (shade[i] === Shade.HIDDEN) continue;
        if (!isCounted(model.kind[i])) {
          repeats++;
          continue;
        }
        const inside = Math.min(model.end(i), endNs) - Math.max(model.start[i], startNs);
        counts[model.op[i]]++;
        totals[model.op[i]] += inside;
        row.count++;
        row.totalNs += inside;
      }
    }
    if (row.count === 0) return;
    row.busyNs = busyTime(model, shade, lane.first_row, lane.rows, startNs, endNs);
    byLane.push(row);
  });
  return {
    startNs,
    endNs,
    count: byLane.reduce((sum, row) => sum + row.count, 0),
    totalNs: byLane.reduce((sum, row) => sum + row.totalNs, 0),
    byOp: opRows(model, counts, totals),
    byLane,
    repeats,
  };
}

function opRows(model: TimelineModel, counts: Uint32Array, totals: Float64Array): RangeRow[] {
  const rows: RangeRow[] = [];
  counts.forEach((count, op) => {
    if (count > 0) rows.push({ key: model.ops.get(op), count, totalNs: totals[op] });
  });
  return rows.sort((a, b) => b.totalNs - a.totalNs || b.count - a.count);
}

/** Return the length of the union of the visible slices of some rows, in a range. */
export function busyTime(
  model: TimelineModel,
  shade: Uint8Array | null,
  firstRow: number,
  rows: number,
  startNs: number,
  endNs: number,
): number {
  const [starts, ends] = gaps(model, shade, firstRow, rows, startNs, endNs);
  return endNs - startNs - ends.reduce((sum, end, i) => sum + end - starts[i], 0);
}

/** Return the starts and ends, in order, of the times in a range in which none of the rows has a visible slice. */
export function gaps(
  model: TimelineModel,
  shade: Uint8Array | null,
  firstRow: number,
  rows: number,
  startNs: number,
  endNs: number,
): [starts: Float64Array, ends: Float64Array] {
  const starts: number[] = [];
  const ends: number[] = [];
  const cursors = Uint32Array.from({ length: rows }, (_, r) => model.firstEndingAfter(firstRow + r, startNs));
  let covered = startNs;
  while (covered < endNs) {
    const next = advance(model, shade, firstRow, cursors, covered);
    if (next.until > covered) {
      covered = next.until;
      continue;
    }
    const end = Math.min(next.start, endNs);
    starts.push(covered);
    ends.push(end);
    covered = end;
  }
  return [Float64Array.from(starts), Float64Array.from(ends)];
}

/** Move each row's cursor past the slices that end by t. Returns until when slices cover the time from t, and the next start. */
function advance(
  model: TimelineModel,
  shade: Uint8Array | null,
  firstRow: number,
  cursors: Uint32Array,
  t: number,
): { until: number; start: number } {
  let until = t;
  let start = Infinity;
  for (let r = 0; r < cursors.length; r++) {
    const end = model.rowOffsets[firstRow + r + 1];
    let i = cursors[r];
    while (i < end && (model.end(i) <= t || shade?.[i] === Shade.HIDDEN)) i++;
    // contiguous slices are walked here, so that a long busy stretch costs one call
    while (i < end && model.start[i] <= until) {
      if (shade?.[i] !== Shade.HIDDEN) until = Math.max(until, model.end(i));
      i++;
    }
    cursors[r] = i;
    if (i < end) start = Math.min(start, model.start[i]);
  }
  return { until, start };
}
