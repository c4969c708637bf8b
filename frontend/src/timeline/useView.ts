/** Binds one TimelineView to the trace's state: what changes here is drawn, what is done on the canvas changes the state. */
import {
  computed,
  onBeforeUnmount,
  onMounted,
  shallowRef,
  watch,
  type ComputedRef,
  type Ref,
  type ShallowRef,
} from "vue";
import type { NodeDetail } from "@/client/messages";
import { useTheme } from "@/state/theme";
import { dependenciesOf } from "./arrows";
import { THEMES } from "./colours";
import type { LaneChoices, Layout } from "./layout";
import type { TimelineModel } from "./model";
import { shades } from "./shading";
import type { TraceState } from "./state";
import { TimelineView } from "./view";

/** From this width on lane headers stand beside the lanes; in narrower windows they lie above them. */
export const WIDE_WINDOW = 720;
/** The URL follows the view when it has rested so long. */
const REST_MS = 350;

export interface Hover {
  slice: number;
  x: number;
  y: number;
}

export interface ViewBinding {
  readonly view: ShallowRef<TimelineView | null>;
  readonly hover: ShallowRef<Hover | null>;
  readonly layout: ShallowRef<Layout | null>;
  readonly scrollY: Ref<number>;
  readonly shade: ComputedRef<Uint8Array>;
  readonly choices: ComputedRef<LaneChoices>;
  readonly resize: (width: number, height: number) => void;
}

const numbers = (texts: readonly string[]): number[] => texts.map(Number).filter(Number.isFinite);

export function useView(
  state: TraceState,
  model: TimelineModel,
  canvas: Readonly<Ref<HTMLCanvasElement | null>>,
  detail: () => NodeDetail | null,
  onPainted: (view: TimelineView) => void,
): ViewBinding {
  const { shown } = useTheme();
  const view = shallowRef<TimelineView | null>(null);
  const hover = shallowRef<Hover | null>(null);
  const layout = shallowRef<Layout | null>(null);
  const scrollY = shallowRef(0);
  let resting = 0;
  let written = "";
  let row: number | null = null;

  const choices = computed<LaneChoices>(() => ({
    toggled: new Set(numbers(state.toggled.value)),
    pinned: numbers(state.pinned.value),
    order: numbers(state.order.value),
    hidden: new Set(
      model.lanes.filter((l) => state.devices.value.length && !state.devices.value.includes(l.device)).map((l) => l.id),
    ),
  }));
  const shade = computed(() => {
    void state.marks.value; // the model's critical column may have been filled in since
    const found = state.found.value;
    const filters = {
      devices: state.devices.value,
      ops: state.ops.value,
      scope: state.scope.value,
      leastNs: state.least.value ?? 0,
    };
    return shades(model, filters, state.highlight.value, found.status === "ready" ? found.matches.mask : null);
  });

  function rest(of: TimelineView): void {
    const { viewport } = of;
    const next = viewport.fitted ? null : ([Math.max(0, viewport.t0), viewport.t1] as const);
    written = String(next?.map(Math.round));
    state.view.value = next;
    row = of.viewport.scrollY > 0 ? of.firstRow() : null;
    state.row.value = row;
  }

  function moved(of: TimelineView): void {
    scrollY.value = of.viewport.scrollY;
    layout.value = of.layout;
    clearTimeout(resting);
    resting = window.setTimeout(() => rest(of), REST_MS);
  }

  function create(element: HTMLCanvasElement): TimelineView {
    const created: TimelineView = new TimelineView(element, model, THEMES[shown.value], shade.value, {
      hover: (slice, x, y) => (hover.value = slice < 0 ? null : { slice, x, y }),
      select: (slice) => (state.node.value = slice < 0 ? null : model.node[slice]),
      range: (range, done) => {
        if (done) state.range.value = range;
      },
      moved: () => moved(created),
      painted: () => onPainted(created),
    });
    return created;
  }

  function sliceOfNode(): number {
    return state.node.value === null ? -1 : model.sliceOf(state.node.value);
  }

  function restore(of: TimelineView): void {
    of.arrange(choices.value);
    of.overlay.range = state.range.value;
    of.overlay.idle = state.highlight.value === "idle";
    of.overlay.selected = sliceOfNode();
  }

  onMounted(() => {
    if (canvas.value === null) return;
    view.value = create(canvas.value);
    restore(view.value);
  });
  onBeforeUnmount(() => {
    clearTimeout(resting);
    view.value?.dispose();
  });

  /** The place that the URL keeps: times, and how far the lanes are scrolled. */
  function place(of: TimelineView): void {
    if (state.view.value !== null) of.jump(...state.view.value);
    if (state.row.value !== null) of.scrollToRow((row = state.row.value));
  }

  function resize(width: number, height: number): void {
    const current = view.value;
    if (current === null || width === 0) return;
    const first = current.viewport.width <= 1;
    const selected = sliceOfNode();
    const seen = first || (selected >= 0 && current.inSight(selected));
    current.resize(width, height, window.devicePixelRatio || 1, window.innerWidth < WIDE_WINDOW);
    if (first) place(current);
    if (selected >= 0 && seen) current.keepInSight(selected);
    current.drawNow();
  }

  watch(shown, (scheme) => view.value?.setTheme(THEMES[scheme]));
  watch(shade, (next) => view.value?.setShade(next));
  watch(choices, (next) => view.value?.arrange(next));
  watch(state.node, () => {
    const slice = sliceOfNode();
    view.value?.select(slice);
    if (slice >= 0) view.value?.keepInSight(slice); // Back and Forward lead to rows that are scrolled away
  });
  watch(state.row, (next) => {
    if (next !== row && next !== null) view.value?.scrollToRow(next);
    row = next;
  });
  watch(state.revealed, (wish) => {
    const slice = wish === null ? -1 : model.sliceOf(wish.node);
    if (slice >= 0) view.value?.reveal(slice);
  });
  watch(detail, (next) =>
    view.value?.setDependencies(next !== null && next.node === state.node.value ? dependenciesOf(model, next) : []),
  );
  watch([state.range, state.highlight], () => {
    if (view.value === null) return;
    view.value.overlay.range = state.range.value;
    view.value.overlay.idle = state.highlight.value === "idle";
    view.value.redraw();
  });
  watch(state.camera, (camera) => {
    if (camera !== null) view.value?.show(camera.startNs, camera.endNs);
  });
  watch(state.view, (next) => {
    const spelled = String(next?.map(Math.round));
    if (view.value === null || spelled === written) return;
    written = spelled;
    if (next === null) view.value.fit();
    else view.value.show(next[0], next[1], 0);
  });
  return { view, hover, layout, scrollY, shade, choices, resize };
}
