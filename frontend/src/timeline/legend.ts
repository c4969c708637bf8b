/** What the colours mean in this trace: op types (and the kinds that have a hue of their own) by the time they take. */
import { isCounted, Kind, KIND_NAMES, type TimelineModel } from "./model";
import type { OpColours } from "./resolveColourClashes";

export interface LegendEntry {
  /** An op type; for a kind its name. */
  title: string;
  slot: number;
  totalNs: number;
  /** What a search for it looks for. */
  op: string;
}

/** The `most` entries with the largest totals, repeats left out. One pass over the slices. */
export function legendOf(model: TimelineModel, colours: OpColours, most: number): LegendEntry[] {
  const kinds = KIND_NAMES.length;
  const totals = new Float64Array(model.ops.length * kinds);
  for (let i = 0; i < model.count; i++) totals[model.op[i] * kinds + model.kind[i]] += model.duration[i];
  const entries: LegendEntry[] = [];
  for (let op = 0; op < model.ops.length; op++) {
    const byKind = totals.subarray(op * kinds, (op + 1) * kinds).filter((_, kind) => isCounted(kind));
    const totalNs = byKind.reduce((sum, ns) => sum + ns, 0);
    if (totalNs === 0) continue;
    const name = model.ops.get(op);
    const kind = colouredAs(byKind);
    entries.push({ title: name || KIND_NAMES[kind], slot: colours.slotOf(name, kind), totalNs, op: name });
  }
  return entries.sort((a, b) => b.totalNs - a.totalNs).slice(0, most);
}

/** Of an op of several kinds the one that takes most; an op's launches on the host stand behind its kernels. */
function colouredAs(byKind: Float64Array): number {
  const own = byKind.map((ns, kind) => (kind === Kind.LAUNCH ? 0 : ns));
  const most = Math.max(...own);
  return most > 0 ? own.indexOf(most) : Kind.LAUNCH;
}
