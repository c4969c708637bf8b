/** The state of the view of one trace. The timeline, the panels and the analyses share it; most of it is in the URL. */
import { inject, markRaw, provide, ref, shallowRef, type InjectionKey, type Ref, type ShallowRef } from "vue";
import type { Bookmark } from "@/client/messages";
import { flag, list, number, oneOf, text, useParameter, type Spelling } from "@/state/url";
import { bookmarkSpelling } from "./bookmarks";
import type { CounterSet } from "./counters";
import type { TimelineModel } from "./model";
import type { Matches } from "./search";
import { HIGHLIGHTS, type Highlight } from "./shading";

export type Range = readonly [startNs: number, endNs: number];

/** Return how a range is spelled in the URL: its start and end in ns, such as `1200-98000`. */
export function rangeSpelling(): Spelling<Range | null> {
  return {
    initial: null,
    read: (spelled) => {
      const [start, end, ...rest] = spelled.split("-").map(Number);
      return rest.length === 0 && Number.isFinite(start) && end > start && start >= -1e15 ? [start, end] : undefined;
    },
    write: (range) => (range === null ? undefined : range.map((t) => String(Math.max(0, Math.round(t)))).join("-")),
  };
}

/** What the timeline brings into view next: a new object each time, so that the same target can be requested twice. */
export type Target = { readonly node: number } | { readonly startNs: number; readonly endNs: number };

/** The state of the search, or its result. */
export type SearchResult =
  | { readonly status: "empty" | "busy" }
  | { readonly status: "invalid"; readonly message: string }
  | { readonly status: "ready"; readonly matches: Matches };

export interface TraceState {
  readonly trace: number;
  /** Null until the timeline was loaded. */
  readonly model: ShallowRef<TimelineModel | null>;
  /** The selected node (an index in the trace), null: none. */
  readonly node: Ref<number | null>;
  readonly range: Ref<Range | null>;
  /** The visible range of time, as it is stored in the URL. */
  readonly view: Ref<Range | null>;
  /** The first visible row if the lanes are scrolled, as it is stored in the URL. */
  readonly row: Ref<number | null>;
  readonly search: Ref<string>;
  readonly regex: Ref<boolean>;
  readonly highlight: Ref<Highlight>;
  readonly devices: Ref<readonly string[]>;
  /** A pattern for the names of lanes. */
  readonly lanes: Ref<string>;
  readonly ops: Ref<readonly string[]>;
  readonly scope: Ref<string>;
  /** Slices shorter than this many ns are hidden; null: no slices are hidden. */
  readonly least: Ref<number | null>;
  /** Ids of the lanes that the user folded or unfolded, pinned, and reordered (see `LaneChoices`). */
  readonly toggled: Ref<readonly string[]>;
  readonly pinned: Ref<readonly string[]>;
  readonly order: Ref<readonly string[]>;
  /** Null until they were loaded. */
  readonly counters: ShallowRef<CounterSet | null>;
  /** Keys of folded counters; ALL: the whole group. */
  readonly foldedCounters: Ref<readonly string[]>;
  /** The bookmarks in the link. */
  readonly linkBookmarks: Ref<readonly Bookmark[]>;
  /** The bookmarks in the link, and the bookmarks that are saved with the trace. */
  readonly bookmarks: ShallowRef<readonly Bookmark[]>;
  readonly searchResult: ShallowRef<SearchResult>;
  /** Counts how often the model's critical column was filled in. Views watch this count: the model is not reactive. */
  readonly marks: Ref<number>;
  readonly target: ShallowRef<Target | null>;
  /** Select a node and bring it into view on the timeline. */
  select(node: number | null): void;
  /** Bring a range of time into view. */
  show(startNs: number, endNs: number): void;
  /** Mark a range of time and bring it into view; the page then shows its statistics. */
  mark(startNs: number, endNs: number): void;
  /** Search for an op type or a name. */
  find(query: string, regex?: boolean): void;
}

const KEY: InjectionKey<TraceState> = Symbol("trace");

/** Create the state. Call it in the setup of the view that shows the trace. */
export function provideTrace(trace: number): TraceState {
  const state = createTraceState(trace);
  provide(KEY, state);
  return state;
}

/** Return the trace's state; undefined in a view without a single trace, such as a comparison. */
export function traceOrUndefined(): TraceState | undefined {
  return inject(KEY, undefined);
}

export function useTrace(): TraceState {
  const state = traceOrUndefined();
  if (!state) throw new Error("no trace was provided: call provideTrace in the view");
  return state;
}

function createTraceState(trace: number): TraceState {
  const node = useParameter("node", number(), "push");
  const range = useParameter("range", rangeSpelling(), "push");
  const search = useParameter("q", text());
  const regex = useParameter("regex", flag());
  const target = shallowRef<Target | null>(null);
  const show = (startNs: number, endNs: number): void => {
    target.value = { startNs, endNs };
  };
  return {
    trace,
    model: shallowRef<TimelineModel | null>(null),
    node,
    range,
    view: useParameter("view", rangeSpelling()),
    row: useParameter("row", number()),
    search,
    regex,
    highlight: useParameter("highlight", oneOf(HIGHLIGHTS, "none")),
    devices: useParameter("devices", list()),
    lanes: useParameter("lanes", text()),
    ops: useParameter("ops", list()),
    scope: useParameter("scope", text()),
    least: useParameter("least", number()),
    toggled: useParameter("fold", list()),
    pinned: useParameter("pin", list()),
    order: useParameter("order", list()),
    counters: shallowRef<CounterSet | null>(null),
    foldedCounters: useParameter("counters", list()),
    linkBookmarks: useParameter("bookmarks", bookmarkSpelling()),
    bookmarks: shallowRef<readonly Bookmark[]>([]),
    searchResult: shallowRef<SearchResult>({ status: "empty" }),
    marks: ref(0),
    target,
    select: (wanted) => {
      node.value = wanted;
      if (wanted !== null) target.value = { node: wanted };
    },
    show,
    mark: (startNs, endNs) => {
      range.value = [startNs, endNs];
      show(startNs, endNs);
    },
    find: (query, asPattern = false) => {
      search.value = query;
      regex.value = asPattern;
    },
  };
}

/** Set the model without making it reactive, because it is large. */
export function setModel(state: TraceState, model: TimelineModel): void {
  state.model.value = markRaw(model);
}
