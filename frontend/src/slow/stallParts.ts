/** The parts of slow steps' time, and several steps' stacks as one tree. */
import type { PartKind, Stall, StallPart, StallStacks } from "@/client/messages";
import { formatSeconds } from "@/format";

/** The name and the colour of each kind of part. The colours are visible on light and on dark backgrounds. */
export const PARTS: Record<PartKind, { readonly title: string; readonly colour: string }> = {
  tensorflow: { title: "TensorFlow, inside the step", colour: "#4f7fd9" },
  py_function: { title: "Python function in the graph", colour: "#8b6fd8" },
  other_run: { title: "steps of other runs", colour: "#2f9e8f" },
  input: { title: "waiting for the next element of a dataset", colour: "#b0603f" },
  checkpoint: { title: "checkpoints", colour: "#5f6fc9" },
  retrace: { title: "tracing a function anew", colour: "#c2569b" },
  python: { title: "Python code", colour: "#d08a2e" },
  no_cpu: { title: "no CPU", colour: "#7d8797" },
  lock: { title: "waiting for Python's lock", colour: "#c2564a" },
  gc: { title: "garbage collection", colour: "#6c9a3a" },
  wait: { title: "waiting", colour: "#b3a24a" },
  disk: { title: "waiting for a disk", colour: "#3f9bc4" },
  stopped: { title: "process stopped", colour: "#4b5362" },
  unknown: { title: "not measured", colour: "#a9b0bd" },
};

/** `waiting for Python's lock, thread serializer: 1.9 s, usually 0 s`. */
export function partText(part: StallPart): string {
  const what = part.what ? `, ${part.what}` : "";
  const usual = part.usual_s === null ? "" : `, usually ${formatSeconds(part.usual_s)}`;
  return `${PARTS[part.kind].title}${what}: ${formatSeconds(part.duration_s)}${usual}`;
}

export interface Legend {
  readonly title: string;
  readonly colour: string;
}

/** Return the kinds of parts that occur, in the order of PARTS. */
export function partLegend(stalls: readonly { readonly parts: readonly StallPart[] }[]): Legend[] {
  const kinds = new Set(stalls.flatMap((stall) => stall.parts.map((part) => part.kind)));
  return Object.entries(PARTS).flatMap(([kind, legend]) => (kinds.has(kind as PartKind) ? [legend] : []));
}

/** Return a step's parts in the order of PARTS, so that parts of one kind are below each other in a list of steps. */
export function inOrder(stall: Stall): StallPart[] {
  const order = Object.keys(PARTS);
  return [...stall.parts].sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind));
}

/** Return the stacks of several slow steps as one tree. Equal lines with equal callers are joined. */
export function merged(all: readonly StallStacks[]): StallStacks {
  const tree: StallStacks = { frames: [], parent: [], frame: [], seconds: [], samples: [], samples_left_out: 0 };
  const frames = new Map<string, number>();
  const nodes = new Map<string, number>();
  for (const stacks of all) {
    tree.samples_left_out += stacks.samples_left_out;
    const places: number[] = []; // of this step's nodes in the tree
    stacks.parent.forEach((parent, node) => {
      const frame = stacks.frames[stacks.frame[node]!]!;
      const key = JSON.stringify([frame.file, frame.line, frame.function, frame.owner, frame.kind]);
      const number = frames.get(key) ?? tree.frames.push(frame) - 1;
      frames.set(key, number);
      const caller = parent < 0 ? -1 : places[parent]!;
      const place = nodes.get(`${caller} ${number}`) ?? tree.parent.length;
      nodes.set(`${caller} ${number}`, place);
      places.push(place);
      if (place === tree.parent.length) {
        tree.parent.push(caller);
        tree.frame.push(number);
        tree.seconds.push(0);
        tree.samples.push(0);
      }
      tree.seconds[place]! += stacks.seconds[node]!;
      tree.samples[place]! += stacks.samples[node]!;
    });
  }
  return tree;
}
