/** Writes the visible part of a timeline to the URL, and moves the timeline if the URL changes. */
import type { TraceState } from "./state";
import type { Place, TimelineView } from "./view";

/** The URL is written when the view has not moved for this long. */
const REST_MS = 350;

/** Return times as a text in which they can be compared. */
const asText = (times: Place["times"]): string => String(times?.map(Math.round));

export class ViewportInUrl {
  private timer = 0;
  /** The place that was last written to the URL or read from it. If the URL has this place, the timeline does not move. */
  private lastPlace: Place;

  constructor(private readonly state: TraceState) {
    this.lastPlace = this.place;
  }

  get place(): Place {
    return { times: this.state.view.value, row: this.state.row.value };
  }

  /** Write the view's place to the URL once the view has rested. */
  keepSoon(view: TimelineView): void {
    this.stop();
    this.timer = window.setTimeout(() => this.keep(view.place), REST_MS);
  }

  private keep(place: Place): void {
    this.lastPlace = place;
    this.state.view.value = place.times;
    this.state.row.value = place.row;
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  /** Move the timeline if the times in the URL have changed. */
  followTimes(view: TimelineView): void {
    const { times } = this.place;
    if (asText(times) === asText(this.lastPlace.times)) return;
    this.lastPlace = { ...this.lastPlace, times };
    if (times === null) view.fit();
    else view.show(...times, 0);
  }

  /** Scroll the timeline if the row in the URL has changed. */
  followRow(view: TimelineView): void {
    const { row } = this.place;
    if (row !== this.lastPlace.row && row !== null) view.scrollToRow(row);
    this.lastPlace = { ...this.lastPlace, row };
  }
}
