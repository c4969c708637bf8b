/** The places of the counters: below the lanes, in the room that the lanes leave. All heights are in CSS pixels. */

export const COUNTERS_HEADING = 26;
const FOLDED_HEIGHT = 24;
const SCROLLING_HEIGHT = 48;
const MIN_HEIGHT = 36;
const MAX_HEIGHT = 72;
const GAP = 6;
/** Height of a counter's name, which is above its plot in narrow windows. */
const NAME_STRIP = 24;

/** A counter's place. `top` counts from the content's top, as a lane's does. */
export interface CounterBand {
  /** Position in the trace's counters. */
  readonly index: number;
  readonly key: string;
  readonly top: number;
  readonly height: number;
  readonly plotTop: number;
  readonly plotHeight: number;
  readonly folded: boolean;
}

/** The keys of the trace's counters, and of those that the user folded; ALL means the whole group. */
export interface CounterChoices {
  readonly keys: readonly string[];
  readonly folded: ReadonlySet<string>;
  /** Whether there is a heading. It may be there without counters, to say why none can be drawn. */
  readonly heading: boolean;
}

export const ALL = "all";
export const NO_COUNTERS: CounterChoices = { keys: [], folded: new Set(), heading: false };

/**
 * Return the bands from `top` on, and their height with the heading. `strip`: names are above the plots (narrow windows).
 * `window`: the height that can be filled.
 */
export function placeCounters(
  { keys, folded, heading }: CounterChoices,
  strip: boolean,
  top: number,
  window: number,
): { bands: CounterBand[]; height: number } {
  if (!heading) return { bands: [], height: 0 };
  if (folded.has(ALL)) return { bands: [], height: COUNTERS_HEADING };
  const name = strip ? NAME_STRIP : 0;
  const open = openHeight(keys, folded, window - top - COUNTERS_HEADING, name);
  let y = top + COUNTERS_HEADING;
  const bands = keys.map((key, index): CounterBand => {
    const isFolded = folded.has(key);
    const plotHeight = isFolded ? FOLDED_HEIGHT : open;
    const band = {
      index,
      key,
      top: y,
      height: name + plotHeight + GAP,
      plotTop: y + name + GAP / 2,
      plotHeight,
      folded: isFolded,
    };
    y += band.height;
    return band;
  });
  return { bands, height: y - top };
}

/** Return the height of an open counter's plot. Open counters share the room below the lanes, or scroll if it is too little. */
function openHeight(keys: readonly string[], folded: ReadonlySet<string>, room: number, name: number): number {
  const foldedCount = keys.filter((key) => folded.has(key)).length;
  const open = keys.length - foldedCount;
  const each = Math.floor((room - foldedCount * (FOLDED_HEIGHT + GAP + name)) / Math.max(1, open)) - GAP - name;
  return each < MIN_HEIGHT ? SCROLLING_HEIGHT : Math.min(each, MAX_HEIGHT);
}
