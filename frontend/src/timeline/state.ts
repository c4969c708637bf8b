/** What the reader looks at in one trace: kept in the URL, shared by the timeline, the panels and the analyses. */
import { inject, markRaw, provide, ref, shallowRef, type InjectionKey, type Ref, type ShallowRef } from "vue";
import type { Bookmark } from "@/client/messages";
import { flag, list, number, oneOf, text, useParameter, type Spelling } from "@/state/url";
import { bookmarkSpelling } from "./bookmarks";
import type { CounterSet } from "./counters";
import type { TimelineModel } from "./model";
import type { Matches } from "./search";
import { HIGHLIGHTS, type Highlight } from "./shading";

export type Range = readonly [startNs: number, endNs: number];

/** `12.5-980`: two numbers of ns. */
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

/** What the timeline brings into view next; a new object each time, so that the same can be asked for twice. */
export type Target = { readonly node: number } | { readonly startNs: number; readonly endNs: number };

/** What the search has come to. */
export type SearchResult =
  | { readonly status: "empty" | "busy" }
  | { readonly status: "invalid"; readonly message: string }
  | { readonly status: "ready"; readonly matches: Matches };

export interface TraceState {
  readonly trace: number;
  /** Null until the timeline is here. */
  readonly model: ShallowRef<TimelineModel | null>;
  /** The selected node (an index in the trace), null: none. */
  readonly node: Ref<number | null>;
  readonly range: Ref<Range | null>;
  /** The part in view, as the URL has it. */
  readonly view: Ref<Range | null>;
  /** The first row in view where the lanes are scrolled, as the URL has it. */
  readonly row: Ref<number | null>;
  readonly search: Ref<string>;
  readonly regex: Ref<boolean>;
  readonly highlight: Ref<Highlight>;
  readonly devices: Ref<readonly string[]>;
  /** A pattern over the names of lanes. */
  readonly lanes: Ref<string>;
  readonly ops: Ref<readonly string[]>;
  readonly scope: Ref<string>;
  readonly least: Ref<number | null>;
  readonly toggled: Ref<readonly string[]>;
  readonly pinned: Ref<readonly string[]>;
  readonly order: Ref<readonly string[]>;
  /** Null until they are here. */
  readonly counters: ShallowRef<CounterSet | null>;
  /** Keys of counters; ALL: the whole group. */
  readonly foldedCounters: Ref<readonly string[]>;
  /** Those that the link carries. */
  readonly linkBookmarks: Ref<readonly Bookmark[]>;
  /** Those, and those that are saved with the trace. */
  readonly bookmarks: ShallowRef<readonly Bookmark[]>;
  readonly searchResult: ShallowRef<SearchResult>;
  /** Counts the times that the model's marks (its critical column) were filled in. */
  readonly marks: Ref<number>;
  readonly target: ShallowRef<Target | null>;
  /** Selects a node and brings it into view on the timeline. */
  select(node: number | null): void;
  /** Brings a range of time into view. */
  show(startNs: number, endNs: number): void;
  /** Marks a range of time, shows it, and with it its statistics. */
  mark(startNs: number, endNs: number): void;
  /** Looks for an op type or a name. */
  find(query: string, regex?: boolean): void;
}

const KEY: InjectionKey<TraceState> = Symbol("trace");

/** To be called in the set-up of the view that shows the trace. */
export function provideTrace(trace: number): TraceState {
  const state = createTraceState(trace);
  provide(KEY, state);
  return state;
}

/** Undefined where no single trace is looked at: in a comparison, say. */
export function mayUseTrace(): TraceState | undefined {
  return inject(KEY, undefined);
}

export function useTrace(): TraceState {
  const state = mayUseTrace();
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

/** The model is large and never changes: Vue must not look into it. */
export function setModel(state: TraceState, model: TimelineModel): void {
  state.model.value = markRaw(model);
}
