/** Computes the look of a timeline from the state of its trace. */
import { computed, type ComputedRef } from "vue";
import type { NodeDetail } from "@/client/messages";
import { useTheme } from "@/state/theme";
import { dependenciesOf } from "./arrows";
import type { CounterChoices } from "./counterLayout";
import { THEMES } from "./colours";
import { laneFilter } from "./laneFilter";
import type { LaneChoices } from "./layout";
import type { TimelineModel } from "./model";
import { shades } from "./shading";
import type { TraceState } from "./state";
import type { Look } from "./view";

const numbers = (texts: readonly string[]): number[] => texts.map(Number).filter(Number.isFinite);

export function useLook(state: TraceState, model: TimelineModel, detail: () => NodeDetail | null): ComputedRef<Look> {
  const { shown } = useTheme();
  const hiddenByName = computed(() => laneFilter(model.lanes, state.lanes.value).hidden);
  const choices = computed<LaneChoices>(() => {
    const devices = state.devices.value;
    const hiddenByDevice = model.lanes.filter((lane) => devices.length && !devices.includes(lane.device));
    return {
      toggled: new Set(numbers(state.toggled.value)),
      pinned: numbers(state.pinned.value),
      order: numbers(state.order.value),
      hidden: new Set([...hiddenByDevice.map((lane) => lane.id), ...hiddenByName.value]),
    };
  });
  const counterChoices = computed<CounterChoices>(() => {
    const keys = (state.counters.value?.series ?? []).map(({ key }) => key);
    return { keys, folded: new Set(state.foldedCounters.value), heading: state.counters.value !== null };
  });
  const shade = computed(() => {
    void state.marks.value; // the model's critical column may have been filled in since
    const search = state.searchResult.value;
    const filters = {
      devices: state.devices.value,
      ops: state.ops.value,
      scope: state.scope.value,
      leastNs: state.least.value ?? 0,
      hiddenLanes: hiddenByName.value,
    };
    return shades(model, filters, state.highlight.value, search.status === "ready" ? search.matches.mask : null);
  });
  const dependencies = computed(() => {
    const node = detail();
    return node !== null && node.node === state.node.value ? dependenciesOf(model, node) : [];
  });
  return computed(() => ({
    theme: THEMES[shown.value],
    shade: shade.value,
    choices: choices.value,
    counters: state.counters.value?.series ?? [],
    counterChoices: counterChoices.value,
    bookmarks: state.bookmarks.value,
    selected: state.node.value === null ? -1 : model.sliceOf(state.node.value),
    dependencies: dependencies.value,
    range: state.range.value,
    idle: state.highlight.value === "idle",
  }));
}
