/** A stall's samples as a flame graph: which box stands where. No drawing. */
import type { StackFrame, StallStacks } from "@/client/messages";

/** One call in its caller. `start` and `seconds` are on the graph's time axis, which has no order: it only adds up. */
export interface Box {
  readonly node: number;
  readonly frame: StackFrame;
  readonly parent: number;
  readonly depth: number;
  readonly start: number;
  readonly seconds: number;
  /** Without what it called. */
  readonly own: number;
  readonly samples: number;
}

/** Seconds and samples of each node with all below it. */
function sums(stacks: StallStacks, own: readonly number[]): number[] {
  const all = [...own];
  for (let node = all.length - 1; node >= 0; node--) {
    const parent = stacks.parent[node]!;
    if (parent >= 0) all[parent]! += all[node]!;
  }
  return all;
}

/** Callers before what they called, siblings by time, the longest first. */
export function boxes(stacks: StallStacks): Box[] {
  const seconds = sums(stacks, stacks.seconds);
  const samples = sums(stacks, stacks.samples);
  const children = new Map<number, number[]>();
  stacks.parent.forEach((parent, node) => {
    const siblings = children.get(parent);
    if (siblings) siblings.push(node);
    else children.set(parent, [node]);
  });
  const laidOut: Box[] = [];
  const waiting: { node: number; depth: number; start: number }[] = [];
  const push = (parent: number, depth: number, from: number): void => {
    const ordered = (children.get(parent) ?? []).sort((a, b) => seconds[b]! - seconds[a]!);
    let start = from;
    const row = ordered.map((node) => {
      const box = { node, depth, start };
      start += seconds[node]!;
      return box;
    });
    waiting.push(...row.reverse());
  };
  push(-1, 0, 0);
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { node, depth, start } = next;
    const frame = stacks.frames[stacks.frame[node]!]!;
    const whole = { seconds: seconds[node]!, samples: samples[node]! };
    laidOut.push({ node, frame, parent: stacks.parent[node]!, depth, start, own: stacks.seconds[node]!, ...whole });
    push(node, depth + 1, start);
  }
  return laidOut;
}

/** The box itself and all that stands in it, with the box over the whole width; its callers are left out. */
export function zoomed(all: readonly Box[], root: number | null): readonly Box[] {
  const top = root === null ? undefined : all.find((box) => box.node === root);
  if (!top) return all;
  const at = all.indexOf(top);
  const inside = all.slice(at + 1);
  const end = inside.findIndex((box) => box.depth <= top.depth);
  return [top, ...(end < 0 ? inside : inside.slice(0, end))].map((box) => ({
    ...box,
    depth: box.depth - top.depth,
    start: box.start - top.start,
  }));
}

export type Direction = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight";

/** Where an arrow key leads: to the caller, to what it called for longest, to a neighbour in the same row. */
export function neighbour(all: readonly Box[], node: number, key: Direction): number {
  const here = all.find((box) => box.node === node);
  if (!here) return all[0]?.node ?? -1;
  if (key === "ArrowUp") return all.some((box) => box.node === here.parent) ? here.parent : node;
  if (key === "ArrowDown") return all.find((box) => box.parent === node)?.node ?? node;
  const row = all.filter((box) => box.depth === here.depth).sort((a, b) => a.start - b.start);
  const at = row.indexOf(here) + (key === "ArrowRight" ? 1 : -1);
  return row[at]?.node ?? node;
}

/** A line of code in all stacks: its own time, and with what it called. A line that calls itself counts once. */
export interface LineTotal {
  readonly key: number;
  readonly frame: StackFrame;
  readonly own: number;
  readonly seconds: number;
  readonly samples: number;
}

export function lineTotals(stacks: StallStacks): LineTotal[] {
  const all = boxes(stacks);
  const byFrame = new Map<number, { own: number; seconds: number; samples: number }>();
  const above: number[] = [];
  for (const box of all) {
    above.length = box.depth;
    const frame = stacks.frame[box.node]!;
    const total = byFrame.get(frame) ?? { own: 0, seconds: 0, samples: 0 };
    total.own += box.own;
    if (!above.includes(frame)) {
      total.seconds += box.seconds;
      total.samples += box.samples;
    }
    byFrame.set(frame, total);
    above.push(frame);
  }
  const lines = [...byFrame].map(([key, total]) => ({ key, frame: stacks.frames[key]!, ...total }));
  return lines.filter((line) => line.frame.kind !== "thread").sort((a, b) => b.own - a.own || b.seconds - a.seconds);
}

/** `CheckpointSaverHook.after_run`, `load_batch`, a thread's name. */
export function frameName(frame: StackFrame): string {
  return frame.owner ? `${frame.owner}.${frame.function}` : frame.function;
}

/** `train.py:88`; "" for a thread. */
export function framePlace(frame: { readonly file: string; readonly line: number }): string {
  const name = frame.file.replaceAll("\\", "/").split("/").pop() ?? "";
  return name && frame.line ? `${name}:${frame.line}` : name;
}
