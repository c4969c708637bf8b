/**
 * The colour of each op in a trace, or in several that are shown together. A family with a reserved colour keeps it; if several
 * families share a reserved colour, the first of them keeps it. Of all other families, those that take the most time get
 * different colours, as long as there are enough colours.
 */
import { COMPUTE_SLOTS, RESERVED_SLOT, SHARED_SLOTS, slotOf } from "./colours";
import { Kind, type TimelineModel } from "./model";
import { familyOf } from "./opNames";

export class OpColours {
  /** Family -> slot, for the families whose slot here differs from the slot that `slotOf` (colours.ts) returns. */
  private readonly moved: ReadonlyMap<string, number>;

  constructor(models: readonly TimelineModel[]) {
    this.moved = movedFamilies(timeByFamily(models));
  }

  slotOf(op: string, kind: number): number {
    return (kind === Kind.COMPUTE ? this.moved.get(familyOf(op)) : undefined) ?? slotOf(op, kind);
  }

  /** [slices] the colour slot of each slice. */
  slotsOf({ ops, op, kind }: TimelineModel): Uint8Array {
    const compute = new Uint8Array(ops.length);
    for (let i = 0; i < ops.length; i++) compute[i] = this.slotOf(ops.get(i), Kind.COMPUTE);
    const slots = new Uint8Array(kind.length);
    for (let i = 0; i < slots.length; i++) slots[i] = kind[i] === Kind.COMPUTE ? compute[op[i]] : slotOf("", kind[i]);
    return slots;
  }
}

const coloursByModel = new WeakMap<TimelineModel, OpColours>();

/** Return the colours of a single trace, computed once. */
export function coloursOf(model: TimelineModel): OpColours {
  const colours = coloursByModel.get(model) ?? new OpColours([model]);
  coloursByModel.set(model, colours);
  return colours;
}

function timeByFamily(models: readonly TimelineModel[]): Map<string, number> {
  const totals = new Map<string, number>();
  for (const { ops, op, kind, duration, count } of models) {
    const time = new Float64Array(ops.length);
    for (let i = 0; i < count; i++) if (kind[i] === Kind.COMPUTE) time[op[i]] += duration[i];
    time.forEach((ns, i) => {
      const family = familyOf(ops.get(i));
      if (ns > 0) totals.set(family, (totals.get(family) ?? 0) + ns);
    });
  }
  return totals;
}

const byName = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/**
 * Return new slots for families whose slot (`slotOf`) another family has. Their times decide which families get a new slot; their
 * names alone decide which slot each of them gets, so that traces of the same ops have the same colours.
 */
function movedFamilies(time: ReadonlyMap<string, number>): Map<string, number> {
  const owners = ownersOf(time);
  const free = [...SHARED_SLOTS, ...COMPUTE_SLOTS.filter((slot) => !SHARED_SLOTS.includes(slot) && !owners.has(slot))];
  const longest = [...time.keys()]
    .filter((family) => owners.get(slotOf(family, Kind.COMPUTE)) !== family)
    .sort((a, b) => (time.get(b) ?? 0) - (time.get(a) ?? 0) || byName(a, b))
    .slice(0, free.length)
    .sort(byName);
  const taken = new Set(owners.keys());
  const clashing: string[] = [];
  for (const family of longest) {
    const slot = slotOf(family, Kind.COMPUTE);
    if (taken.has(slot)) clashing.push(family);
    taken.add(slot);
  }
  const remaining = free.filter((slot) => !taken.has(slot));
  return new Map(clashing.map((family, i) => [family, remaining[i]!]));
}

/** Return reserved slot -> the family that keeps it: `MaxPool` in a trace that has `MaxPool` and `MaxPoolGrad`. */
function ownersOf(time: ReadonlyMap<string, number>): Map<number, string> {
  const owners = new Map<number, string>();
  for (const [family, slot] of RESERVED_SLOT) if (time.has(family) && !owners.has(slot)) owners.set(slot, family);
  return owners;
}
