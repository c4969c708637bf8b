/** Which slices are hidden by a filter, dimmed by a search or a highlight, or shown as they are. */
import { Shade } from "./colours";
import { Kind, type TimelineModel } from "./model";

export const HIGHLIGHTS = ["none", "communication", "copies", "idle", "critical"] as const;
export type Highlight = (typeof HIGHLIGHTS)[number];

export interface Filters {
  /** Devices to show; empty: all. */
  devices: readonly string[];
  /** Op types to show; empty: all. */
  ops: readonly string[];
  /** Names must be in this scope; "": all. */
  scope: string;
  /** Shorter slices are hidden. */
  leastNs: number;
  /** Ids of lanes that are hidden because of their names. */
  hiddenLanes: ReadonlySet<number>;
}

export const NO_FILTERS: Filters = { devices: [], ops: [], scope: "", leastNs: 0, hiddenLanes: new Set() };

export function filtering(filters: Filters): boolean {
  return (
    filters.devices.length > 0 ||
    filters.ops.length > 0 ||
    filters.scope !== "" ||
    filters.leastNs > 0 ||
    filters.hiddenLanes.size > 0
  );
}

/** Return [length] 1 for each string that `wanted` accepts, else 0. */
function members(length: number, get: (index: number) => string, wanted: (text: string) => boolean): Uint8Array {
  const flags = new Uint8Array(length);
  for (let i = 0; i < length; i++) flags[i] = wanted(get(i)) ? 1 : 0;
  return flags;
}

/** Return whether a name is in a scope: the scope's own op, or an op below it. `dense/` and `dense` are the same scope. */
function inScope(name: string, scope: string): boolean {
  const prefix = scope.endsWith("/") ? scope.slice(0, -1) : scope;
  return name.startsWith(prefix) && (name.length === prefix.length || name[prefix.length] === "/");
}

function isHighlighted(model: TimelineModel, highlight: Highlight, slice: number): boolean {
  switch (highlight) {
    case "none":
      return true;
    case "communication":
      return model.kind[slice] === Kind.COMMUNICATION;
    case "copies":
      return model.kind[slice] === Kind.COPY;
    case "idle":
      return false;
    case "critical":
      return model.critical[slice] === 1;
  }
}

/** Return [slices] the shade of each. `matches`: 1 where a search found the slice; null without a search. */
export function shades(
  model: TimelineModel,
  filters: Filters,
  highlight: Highlight,
  matches: Uint8Array | null,
): Uint8Array {
  const shown = visible(model, filters);
  for (let i = 0; i < shown.length; i++) {
    if (shown[i] === 0) continue;
    const bright = isHighlighted(model, highlight, i) && (matches === null || matches[i] === 1);
    shown[i] = bright ? Shade.NORMAL : Shade.DIM;
  }
  return shown;
}

/** Return [slices] 1 for each slice that no filter hides, else 0. */
function visible(model: TimelineModel, filters: Filters): Uint8Array {
  const shown = new Uint8Array(model.count).fill(1);
  if (!filtering(filters)) return shown;
  const { scope, leastNs } = filters;
  const ops = filters.ops.length
    ? members(
        model.ops.length,
        (i) => model.ops.get(i),
        (op) => filters.ops.includes(op),
      )
    : null;
  const names =
    scope === ""
      ? null
      : members(
          model.names.length,
          (i) => model.names.get(i),
          (n) => inScope(n, scope),
        );
  for (let i = 0; i < shown.length; i++) {
    if (model.duration[i] < leastNs || ops?.[model.op[i]] === 0 || names?.[model.name[i]] === 0) shown[i] = 0;
  }
  hideLanes(model, filters, shown);
  return shown;
}

function hideLanes(model: TimelineModel, { devices, hiddenLanes }: Filters, shown: Uint8Array): void {
  for (const lane of model.lanes) {
    if (!hiddenLanes.has(lane.id) && (devices.length === 0 || devices.includes(lane.device))) continue;
    shown.fill(0, model.rowOffsets[lane.first_row], model.rowOffsets[lane.first_row + lane.rows]);
  }
}
