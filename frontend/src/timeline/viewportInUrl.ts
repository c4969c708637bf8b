/** Writes the visible part of a timeline to the URL, and moves the timeline if the URL changes. */
import type { TraceState } from "./state";
import type { Place, TimelineView } from "./view";

/** The URL is written when the view has not moved for this long. */
const REST_MS = 350;

const spelled = (times: Place["times"]): string => String(times?.map(Math.round));

export class ViewportInUrl {
  private timer = 0;
  /** The place that was last written to the URL or read from it. The timeline moves only to another place. */
  private kept: Place;

  constructor(private readonly state: TraceState) {
    this.kept = this.place;
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
    this.kept = place;
    this.state.view.value = place.times;
    this.state.row.value = place.row;
  }

  stop(): void {
    clearTimeout(this.timer);
  }

  followTimes(view: TimelineView): void {
    const { times } = this.place;
    if (spelled(times) === spelled(this.kept.times)) return;
    this.kept = { ...this.kept, times };
    if (times === null) view.fit();
    else view.show(...times, 0);
  }

  followRow(view: TimelineView): void {
    const { row } = this.place;
    if (row !== this.kept.row && row !== null) view.scrollToRow(row);
    this.kept = { ...this.kept, row };
  }
}
