/** The legend of a trace's colours: op types (and kinds without an op type) by their total time. */
import { isCounted, Kind, KIND_NAMES, type TimelineModel } from "./model";
import type { OpColours } from "./resolveColourClashes";

export interface LegendEntry {
  /** The op type, or the name of the kind if there is none. */
  title: string;
  slot: number;
  totalNs: number;
  /** The op type to search for; "" if there is none. */
  op: string;
}

/** Return the `limit` entries with the largest totals. Slices that are not counted are left out. One pass over the slices. */
export function legendOf(model: TimelineModel, colours: OpColours, limit: number): LegendEntry[] {
  const kinds = KIND_NAMES.length;
  const totals = new Float64Array(model.ops.length * kinds);
  for (let i = 0; i < model.count; i++) totals[model.op[i] * kinds + model.kind[i]] += model.duration[i];
  const entries: LegendEntry[] = [];
  for (let op = 0; op < model.ops.length; op++) {
    const byKind = totals.subarray(op * kinds, (op + 1) * kinds).filter((_, kind) => isCounted(kind));
    const totalNs = byKind.reduce((sum, ns) => sum + ns, 0);
    if (totalNs === 0) continue;
    const name = model.ops.get(op);
    const kind = colouringKind(byKind);
    entries.push({ title: name || KIND_NAMES[kind], slot: colours.slotOf(name, kind), totalNs, op: name });
  }
  return entries.sort((a, b) => b.totalNs - a.totalNs).slice(0, limit);
}

/** Return the kind that colours an op: the kind with the most time. Launches on the host count only if there is no other kind. */
function colouringKind(byKind: Float64Array): number {
  const own = byKind.map((ns, kind) => (kind === Kind.LAUNCH ? 0 : ns));
  const longest = Math.max(...own);
  return longest > 0 ? own.indexOf(longest) : Kind.LAUNCH;
}
