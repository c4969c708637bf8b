/** The keys of the trace view. They work everywhere except in input fields, and not together with Ctrl or Meta. */
import { onBeforeUnmount, onMounted } from "vue";
import type { TimelineModel } from "./model";
import { acrossRows, alongRow, firstInView } from "./neighbours";
import type { TraceState } from "./state";
import type { TimelineView } from "./view";

export interface KeyTargets {
  view: () => TimelineView | null;
  shade: () => Uint8Array | null;
  focusSearch: () => void;
  help: () => void;
  bookmark: () => void;
  nextMatch: (forward: boolean) => void;
}

/** The keys that the help lists. Change this table together with the code below. */
export const KEYS: readonly (readonly [keys: readonly string[], does: string])[] = [
  [["W", "S"], "Zoom in, zoom out"],
  [["A", "D", "←", "→"], "Pan left, pan right"],
  [["↑", "↓"], "Scroll the lanes"],
  [["F"], "Fit the whole step"],
  [["Z"], "Zoom to the range, or to the selected op"],
  [["[", "]"], "Select the previous op, the next op on the same row"],
  [["Alt ↑", "Alt ↓"], "Select the nearest op on the row above, on the row below"],
  [["M"], "Bookmark the range, or the pointer's time"],
  [["/"], "Search"],
  [["N", "Shift N"], "Next match, previous match"],
  [["Esc"], "Clear the range, then the selection"],
  [["?"], "Show this list"],
];

export const MOUSE: readonly (readonly [gesture: string, does: string])[] = [
  ["Ctrl wheel, pinch", "Zoom at the pointer"],
  ["Wheel", "Scroll the lanes; zoom if all of them are in view"],
  ["Shift wheel", "Pan"],
  ["Drag", "Pan and scroll"],
  ["Shift drag, drag on the ruler", "Select a range and show its statistics"],
  ["Click", "Select an op and show its details and dependencies"],
  ["Double click", "Zoom to the op"],
];

const FIELDS = "input, textarea, select, [contenteditable=true], dialog";
/** Elements that use the arrow keys while they have the focus. */
const ARROW_OWNERS =
  '[role="grid"], [role="tablist"], [role="separator"], [role="listitem"], [role="menu"], summary, .canvas';

export function useKeys(state: TraceState, targets: KeyTargets): void {
  function selectSlice(model: TimelineModel, slice: number): void {
    if (slice >= 0) state.select(model.node[slice]);
  }

  function step(view: TimelineView, shade: Uint8Array, move: (slice: number) => number): void {
    const { model } = view;
    const selected = state.node.value === null ? -1 : model.sliceOf(state.node.value);
    const next = selected >= 0 ? move(selected) : firstInView(model, shade, view.layout, view.viewport.t0);
    selectSlice(model, next);
  }

  function zoomToSelection(view: TimelineView): void {
    const slice = state.node.value === null ? -1 : view.model.sliceOf(state.node.value);
    if (state.range.value !== null) view.show(...state.range.value);
    else if (slice >= 0) view.show(view.model.start[slice], view.model.end(slice), 0.5);
  }

  function clear(): void {
    if (state.range.value !== null) state.range.value = null;
    else if (state.node.value !== null) state.node.value = null;
  }

  /** Handle a key. Returns whether it did something. */
  function act(event: KeyboardEvent, view: TimelineView, shade: Uint8Array): boolean {
    const { model, layout } = view;
    switch (event.key) {
      case "[":
      case "]":
        step(view, shade, (slice) => alongRow(model, shade, slice, event.key === "]" ? 1 : -1));
        return true;
      case "ArrowUp":
      case "ArrowDown": {
        const down = event.key === "ArrowDown" ? 1 : -1;
        if (event.altKey) step(view, shade, (slice) => acrossRows(model, shade, layout, slice, down));
        else view.scroll(down * 60);
        return true;
      }
      case "f":
      case "F":
        view.fit();
        return true;
      case "z":
      case "Z":
        zoomToSelection(view);
        return true;
      case "n":
        targets.nextMatch(true);
        return true;
      case "N":
        targets.nextMatch(false);
        return true;
      case "m":
      case "M":
        targets.bookmark();
        return true;
      case "/":
        targets.focusSearch();
        return true;
      case "?":
        targets.help();
        return true;
      case "Escape":
        clear();
        return true;
      default:
        return !event.altKey && view.keys.down(event.key);
    }
  }

  function down(event: KeyboardEvent): void {
    const { target } = event;
    const view = targets.view();
    const shade = targets.shade();
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || view === null || shade === null) return;
    if (target instanceof Element && target.closest(FIELDS)) return;
    if (event.key.startsWith("Arrow") && target instanceof Element && target.closest(ARROW_OWNERS)) return;
    if (act(event, view, shade)) event.preventDefault();
  }

  function up(event: KeyboardEvent): void {
    targets.view()?.keys.up(event.key);
  }

  onMounted(() => {
    window.addEventListener("keydown", down);
    window.addEventListener("keyup", up);
  });
  onBeforeUnmount(() => {
    window.removeEventListener("keydown", down);
    window.removeEventListener("keyup", up);
  });
}
