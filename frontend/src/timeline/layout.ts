/** The places of lanes and their rows, with the user's order and pinned, folded and hidden lanes. Heights are in CSS pixels. */
import type { Lane } from "@/client/messages";
import { NO_COUNTERS, placeCounters, type CounterBand, type CounterChoices } from "./counterLayout";

export const HEADER_STRIP = 24;
export const LANE_GAP = 6;
/** Height of the line that names a group, above its first lane. */
export const GROUP_STRIP = 26;
const ROW_HEIGHT = 20;
const DENSE_ROW_HEIGHT = 16;
/** Lanes with at least this many rows have rows of DENSE_ROW_HEIGHT. */
const DENSE_FROM = 10;
/** Rows grow up to this height if a tall window has few rows. */
const MAX_ROW_HEIGHT = 32;
/** Minimum height of an open lane: the name beside it may take two lines. */
const MIN_LANE_HEIGHT = 38;
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
  /** The group that begins here, or "". Its name takes the first GROUP_STRIP pixels. */
  heading: string;
}

/** What the user changed about lanes, by their ids, which a URL can contain. */
export interface LaneChoices {
  /** Lanes that are folded but were open at first, or open but were folded at first. */
  toggled: ReadonlySet<number>;
  pinned: readonly number[];
  /** Ids of lanes in the user's order. Lanes that are not in it follow in the server's order. */
  order: readonly number[];
  hidden: ReadonlySet<number>;
}

export const NO_CHOICES: LaneChoices = { toggled: new Set(), pinned: [], order: [], hidden: new Set() };

/** Return the lanes' indices in the order of the screen: pinned lanes, then those in `choices.order`, then the others. */
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

/** Return the height of a row of an open lane. All rows together are at least as high as the lane's name. */
function openHeight(lane: Lane, growthFactor: number, strip: boolean): number {
  const height = Math.round(naturalHeight(lane) * growthFactor);
  return strip ? height : Math.max(height, MIN_LANE_HEIGHT / lane.rows);
}

/** Return the factor by which rows grow to fill most of a window of the given height; 1 if they overflow the window. */
function growth(lanes: readonly Lane[], strip: boolean, height: number): number {
  const rows = lanes.reduce((sum, lane) => sum + lane.rows * naturalHeight(lane), 0);
  const groups = new Set(lanes.map((lane) => lane.group)).size;
  const rest =
    height - lanes.length * (LANE_GAP + (strip ? HEADER_STRIP : 0)) - (groups > 1 ? groups * GROUP_STRIP : 0);
  return Math.min(MAX_ROW_HEIGHT / ROW_HEIGHT, Math.max(1, (rest * 0.7) / Math.max(1, rows)));
}

/**
 * Return the bands, from top to bottom, and their whole height. `strip`: headers are above their rows (narrow windows). `window`:
 * the height that can be filled. Hidden lanes and lanes without rows have no band.
 */
export function layOut(
  lanes: readonly Lane[],
  choices: LaneChoices,
  strip: boolean,
  window = 0,
): { bands: Band[]; height: number } {
  const bands: Band[] = [];
  const growthFactor = growth(lanes, strip, window);
  let top = 0;
  let group = "";
  for (const index of orderOf(lanes, choices)) {
    const lane = lanes[index];
    if (choices.hidden.has(lane.id) || lane.rows === 0) continue;
    const collapsed = lane.collapsed !== choices.toggled.has(lane.id);
    const rowHeight = collapsed ? COLLAPSED_HEIGHT / lane.rows : openHeight(lane, growthFactor, strip);
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

/** Return the height that lanes take in a window of unlimited height. */
export function fullHeight(lanes: readonly Lane[]): number {
  return layOut(lanes, NO_CHOICES, false, Infinity).height;
}

export function bandAt(bands: readonly Band[], y: number): Band | undefined {
  return bands.find((band) => y >= band.top && y < band.top + band.height);
}

export function bandOfRow(bands: readonly Band[], row: number): Band | undefined {
  return bands.find(({ lane }) => row >= lane.first_row && row < lane.first_row + lane.rows);
}

/** Return the row at y; -1 between rows. */
export function rowAt(bands: readonly Band[], y: number): number {
  const band = bandAt(bands, y);
  if (band === undefined || y < band.rowsTop) return -1;
  const row = Math.floor((y - band.rowsTop) / band.rowHeight);
  return row < band.lane.rows ? band.lane.first_row + row : -1;
}

/** Return the top of a row, in content pixels; NaN for a row that is not shown. */
export function topOfRow(bands: readonly Band[], row: number): number {
  const band = bandOfRow(bands, row);
  return band === undefined ? NaN : band.rowsTop + (row - band.lane.first_row) * band.rowHeight;
}

/** The bands on the screen: pinned ones stay at the top while the others scroll under them. */
export class Layout {
  readonly bands: readonly Band[];
  readonly height: number;
  /** Whether headers are above their rows (narrow windows). */
  readonly strip: boolean;
  /** The counters below the lanes; empty if their group is folded. */
  readonly counters: readonly CounterBand[];
  /** The top of the counters' heading; null without one. */
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

  /** Return the height of the pinned lanes at the top; 0 if they leave too little room: all lanes scroll then. */
  stickyHeight(height: number): number {
    return this.pinnedHeight < height * 0.6 ? this.pinnedHeight : 0;
  }

  /** Return the top of a band on the screen, counted from below the ruler. */
  screenTop(band: Band, scrollY: number, height: number): number {
    return band.pinned && this.stickyHeight(height) > 0 ? band.top : band.top - scrollY;
  }

  /** Convert a y on the screen, counted from below the ruler, to a y in the content. */
  contentY(y: number, scrollY: number, height: number): number {
    return y < this.stickyHeight(height) ? y : y + scrollY;
  }
}
