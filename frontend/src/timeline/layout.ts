/** Where lanes and their rows lie, from the top: order, pinned and collapsed lanes, lanes without anything to show. */
import type { Lane } from "@/client/messages";
import { NO_COUNTERS, placeCounters, type CounterBand, type CounterChoices } from "./counterLayout";

export const HEADER_STRIP = 24;
export const LANE_GAP = 6;
/** The line that names a group, over its first lane. */
export const GROUP_STRIP = 26;
const ROW_HEIGHT = 20;
const DENSE_ROW_HEIGHT = 16;
const DENSE_FROM = 10;
/** Few rows in a tall window grow, but not beyond this. */
const TALLEST_ROW = 32;
/** A lane's name may take two lines beside it. */
const LEAST_LANE = 38;
const COLLAPSED_HEIGHT = 24;

/** A lane's place. `top` counts from the content's top; the lane's rows begin at rowsTop. */
export interface Band {
  /** Position in the timeline's lanes. */
  index: number;
  lane: Lane;
  top: number;
  rowsTop: number;
  rowHeight: number;
  height: number;
  collapsed: boolean;
  pinned: boolean;
  /** The group that begins here, "" where none does: its name takes the first GROUP_STRIP pixels. */
  heading: string;
}

/** What the reader changed about lanes; ids, so that it can live in a URL. */
export interface LaneChoices {
  /** Lanes that are folded although they begin open, or open although they begin folded. */
  toggled: ReadonlySet<number>;
  pinned: readonly number[];
  /** Order of lanes, by id; those that are not in it follow in the server's order. */
  order: readonly number[];
  hidden: ReadonlySet<number>;
}

export const NO_CHOICES: LaneChoices = { toggled: new Set(), pinned: [], order: [], hidden: new Set() };

export function orderOf(lanes: readonly Lane[], choices: LaneChoices): number[] {
  const place = (lane: Lane, index: number): number => {
    const pin = choices.pinned.indexOf(lane.id);
    if (pin >= 0) return pin - 1e6;
    const chosen = choices.order.indexOf(lane.id);
    return chosen >= 0 ? chosen : 1e6 + index;
  };
  const places = lanes.map(place);
  return lanes.map((_, index) => index).sort((a, b) => places[a] - places[b]);
}

function naturalHeight(lane: Lane): number {
  return lane.rows >= DENSE_FROM ? DENSE_ROW_HEIGHT : ROW_HEIGHT;
}

/** Height of a row of an open lane: few rows share at least what the lane's name needs. */
function openHeight(lane: Lane, grown: number, strip: boolean): number {
  const height = Math.round(naturalHeight(lane) * grown);
  return strip ? height : Math.max(height, LEAST_LANE / lane.rows);
}

/** How much taller rows may be for the lanes to fill a window of this height: 1 where they overflow it anyway. */
function growth(lanes: readonly Lane[], strip: boolean, height: number): number {
  const rows = lanes.reduce((sum, lane) => sum + lane.rows * naturalHeight(lane), 0);
  const groups = new Set(lanes.map((lane) => lane.group)).size;
  const rest =
    height - lanes.length * (LANE_GAP + (strip ? HEADER_STRIP : 0)) - (groups > 1 ? groups * GROUP_STRIP : 0);
  return Math.min(TALLEST_ROW / ROW_HEIGHT, Math.max(1, (rest * 0.7) / Math.max(1, rows)));
}

/**
 * The bands, top to bottom, and the height of it all. `strip`: headers lie above their rows (narrow windows). `window`:
 * the height that there is to fill.
 */
export function layOut(
  lanes: readonly Lane[],
  choices: LaneChoices,
  strip: boolean,
  window = 0,
): { bands: Band[]; height: number } {
  const bands: Band[] = [];
  const grown = growth(lanes, strip, window);
  let top = 0;
  let group = "";
  for (const index of orderOf(lanes, choices)) {
    const lane = lanes[index];
    if (choices.hidden.has(lane.id) || lane.rows === 0) continue;
    const collapsed = lane.collapsed !== choices.toggled.has(lane.id);
    const rowHeight = collapsed ? COLLAPSED_HEIGHT / lane.rows : openHeight(lane, grown, strip);
    const pinned = choices.pinned.includes(lane.id);
    const heading = pinned || lane.group === group ? "" : lane.group;
    if (!pinned) group = lane.group;
    const header = (strip ? HEADER_STRIP : 0) + (heading ? GROUP_STRIP : 0);
    const rowsHeight = rowHeight * lane.rows;
    const height = header + rowsHeight + LANE_GAP;
    const rowsTop = top + header + LANE_GAP / 2;
    bands.push({ index, lane, top, rowsTop, rowHeight, height, collapsed, pinned, heading });
    top += height;
  }
  return { bands, height: top };
}

/** The height that lanes fill where there is room without end. */
export function fullHeight(lanes: readonly Lane[]): number {
  return layOut(lanes, NO_CHOICES, false, Infinity).height;
}

export function bandAt(bands: readonly Band[], y: number): Band | undefined {
  return bands.find((band) => y >= band.top && y < band.top + band.height);
}

export function bandOfRow(bands: readonly Band[], row: number): Band | undefined {
  return bands.find(({ lane }) => row >= lane.first_row && row < lane.first_row + lane.rows);
}

/** The row under y, -1 between rows. */
export function rowAt(bands: readonly Band[], y: number): number {
  const band = bandAt(bands, y);
  if (band === undefined || y < band.rowsTop) return -1;
  const row = Math.floor((y - band.rowsTop) / band.rowHeight);
  return row < band.lane.rows ? band.lane.first_row + row : -1;
}

/** Top of a row, in content pixels; NaN for a row that is not shown. */
export function topOfRow(bands: readonly Band[], row: number): number {
  const band = bandOfRow(bands, row);
  return band === undefined ? NaN : band.rowsTop + (row - band.lane.first_row) * band.rowHeight;
}

/** Bands on the screen: pinned ones stay at the top while the rest scrolls under them. */
export class Layout {
  readonly bands: readonly Band[];
  readonly height: number;
  readonly strip: boolean;
  /** Below the lanes: the counters of the trace, without those of a folded group. */
  readonly counters: readonly CounterBand[];
  /** Where the counters' heading lies; null without counters. */
  readonly countersTop: number | null;
  private readonly pinnedHeight: number;

  constructor(
    lanes: readonly Lane[],
    choices: LaneChoices,
    strip: boolean,
    window = 0,
    counters: CounterChoices = NO_COUNTERS,
  ) {
    const { bands, height } = layOut(lanes, choices, strip, window);
    const placed = placeCounters(counters, strip, height, window);
    this.bands = bands;
    this.counters = placed.bands;
    this.countersTop = placed.height > 0 ? height : null;
    this.height = height + placed.height;
    this.strip = strip;
    this.pinnedHeight = bands.reduce((sum, band) => sum + (band.pinned ? band.height : 0), 0);
  }

  /** Height of what stays at the top; nothing stays where that would leave too little room for the rest. */
  stickyHeight(height: number): number {
    return this.pinnedHeight < height * 0.6 ? this.pinnedHeight : 0;
  }

  /** Where a band's top lies below the ruler. */
  screenTop(band: Band, scrollY: number, height: number): number {
    return band.pinned && this.stickyHeight(height) > 0 ? band.top : band.top - scrollY;
  }

  /** The content's y of a y below the ruler. */
  contentY(y: number, scrollY: number, height: number): number {
    return y < this.stickyHeight(height) ? y : y + scrollY;
  }
}
