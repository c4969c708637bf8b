/** Binds one TimelineView to the trace's state: changes of the state are drawn, and actions on the canvas change the state. */
import { onBeforeUnmount, onMounted, shallowRef, watch, type ComputedRef, type Ref, type ShallowRef } from "vue";
import type { NodeDetail } from "@/client/messages";
import type { CounterBand } from "./counterLayout";
import type { Layout } from "./layout";
import type { TimelineModel } from "./model";
import { ViewportInUrl } from "./viewportInUrl";
import type { TraceState } from "./state";
import { useLook } from "./useLook";
import { TimelineView, type Look, type ViewEvents } from "./view";

export interface Hover {
  slice: number;
  x: number;
  y: number;
}

/** A counter under the pointer. */
export interface CounterHover {
  band: CounterBand;
  x: number;
  y: number;
}

export interface ViewBinding {
  readonly view: ShallowRef<TimelineView | null>;
  readonly hover: ShallowRef<Hover | null>;
  readonly counterHover: ShallowRef<CounterHover | null>;
  readonly layout: ShallowRef<Layout | null>;
  readonly size: Ref<{ width: number; height: number }>;
  readonly scrollY: Ref<number>;
  readonly look: ComputedRef<Look>;
}

export function useView(
  state: TraceState,
  model: TimelineModel,
  canvas: Readonly<Ref<HTMLCanvasElement | null>>,
  detail: () => NodeDetail | null,
  onPainted: (view: TimelineView) => void,
): ViewBinding {
  const view = shallowRef<TimelineView | null>(null);
  const hover = shallowRef<Hover | null>(null);
  const counterHover = shallowRef<CounterHover | null>(null);
  const layout = shallowRef<Layout | null>(null);
  const size = shallowRef({ width: 0, height: 0 });
  const scrollY = shallowRef(0);
  const look = useLook(state, model, detail);
  const url = new ViewportInUrl(state);

  function moved(current: TimelineView): void {
    const { width, height } = current;
    if (width !== size.value.width || height !== size.value.height) size.value = { width, height };
    scrollY.value = current.viewport.scrollY;
    layout.value = current.layout;
    url.keepSoon(current);
  }

  function create(element: HTMLCanvasElement): TimelineView {
    const events: ViewEvents = {
      hover: (slice, x, y) => {
        hover.value = slice < 0 ? null : { slice, x, y };
        const band = slice < 0 ? created.counterAt(y) : undefined;
        counterHover.value = band ? { band, x, y } : null;
      },
      select: (slice) => (state.node.value = slice < 0 ? null : model.node[slice]),
      range: (range, done) => {
        if (done) state.range.value = range;
      },
      moved: () => moved(created),
      painted: () => onPainted(created),
    };
    const created = new TimelineView(element, model, look.value, events, url.place);
    return created;
  }

  onMounted(() => {
    if (canvas.value === null) return;
    view.value = create(canvas.value);
    layout.value = view.value.layout;
  });
  onBeforeUnmount(() => {
    url.stop();
    view.value?.dispose();
  });

  watch(look, (next) => view.value?.setLook(next));
  watch(state.view, () => view.value && url.followTimes(view.value));
  watch(state.row, () => view.value && url.followRow(view.value));
  watch(state.target, (target) => {
    if (target === null) return;
    if ("startNs" in target) view.value?.show(target.startNs, target.endNs);
    else if (model.sliceOf(target.node) >= 0) view.value?.reveal(model.sliceOf(target.node));
  });
  return { view, hover, counterHover, layout, size, scrollY, look };
}
