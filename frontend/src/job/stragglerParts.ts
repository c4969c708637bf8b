/** The parts of a process's step in a job, as pieces of a bar; and the processes' titles. */
import type { Job, Straggler } from "@/client/messages";

export interface StragglerPart {
  /** The CSS class that colours the part (components/budget.css). */
  readonly key: string;
  readonly title: string;
  readonly meaning: string;
  /** The width of the part's table column. */
  readonly width?: string;
  readonly ns: (straggler: Straggler) => number;
}

export const STRAGGLER_PARTS: readonly StragglerPart[] = [
  { key: "compute", title: "Compute", meaning: "ops, copies and kernels ran", ns: (s) => s.compute_ns },
  {
    key: "input",
    title: "Input",
    meaning: "waiting for input, or between two steps while the others had begun",
    ns: (s) => s.input_ns,
  },
  {
    key: "exposed_communication",
    title: "Exposed communication",
    meaning: "its own communication, with no compute at the same time",
    width: "minmax(186px, 1fr)",
    ns: (s) => s.exposed_communication_ns,
  },
  {
    key: "idle",
    title: "Waiting for others",
    meaning: "nothing to do until the last process came",
    width: "minmax(140px, 1fr)",
    ns: (s) => s.waiting_ns,
  },
];

export const CAUSES: Record<Straggler["cause"], string> = {
  compute: "Compute",
  input: "Input",
  communication: "Communication",
  none: "Keeps up",
  uncertain: "Uncertain",
};

/** Return the length of a process's bar, in ns. */
export function total(straggler: Straggler): number {
  return STRAGGLER_PARTS.reduce((sum, part) => sum + part.ns(straggler), 0);
}

/** Return the length in ns of the longest bar, which fills the width; 1 if all are empty. */
export function longest(all: readonly Straggler[]): number {
  return all.reduce((max, straggler) => Math.max(max, total(straggler)), 0) || 1;
}

/** Return the ns that a process cost the others: their wait for it, or how much longer its step was, whichever is more. */
export function cost(straggler: Straggler): number {
  return Math.max(straggler.waited_for_ns, straggler.slower_by_ns);
}

/** Return a function from a process's id to its title. The id of a server that recorded nothing is its title already. */
export function titlesOf(job: Job | null): (id: string) => string {
  const titles = new Map(job?.processes.map((p) => [p.id, p.title]));
  return (id) => titles.get(id) ?? id;
}

/** Return [process id, ns waited] of each process that waited for a collective's last process, the longest wait first. */
export function waitsOf(waited: Readonly<Record<string, number>>): [id: string, ns: number][] {
  return Object.entries(waited).sort(([, a], [, b]) => b - a);
}
