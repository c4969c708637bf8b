/** What the colours mean in this trace: op types (and the kinds that have a hue of their own) by the time they take. */
import { slotOf } from "./colours";
import { isCounted, KIND_NAMES, type TimelineModel } from "./model";

export interface LegendEntry {
  /** An op type; for a kind its name. */
  title: string;
  slot: number;
  totalNs: number;
  /** What a search for it looks for. */
  op: string;
}

/** The `most` entries with the largest totals, repeats left out. One pass over the slices. */
export function legendOf(model: TimelineModel, most: number): LegendEntry[] {
  const totals = new Float64Array(model.ops.length);
  const kinds = new Uint8Array(model.ops.length);
  for (let i = 0; i < model.count; i++) {
    if (!isCounted(model.kind[i])) continue;
    totals[model.op[i]] += model.duration[i];
    kinds[model.op[i]] = model.kind[i];
  }
  const entries: LegendEntry[] = [];
  totals.forEach((totalNs, op) => {
    const name = model.ops.get(op);
    if (totalNs > 0) {
      entries.push({ title: name || KIND_NAMES[kinds[op]], slot: slotOf(name, kinds[op]), totalNs, op: name });
    }
  });
  return entries.sort((a, b) => b.totalNs - a.totalNs).slice(0, most);
}
