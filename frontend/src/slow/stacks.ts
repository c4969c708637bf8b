/** A slow step's sampled stacks: the tree of their calls, and the lines of code in them. */
import type { StackFrame, StallStacks } from "@/client/messages";
import { boxes, sums, type Tree } from "@/components/flame";

/** Return the tree of the calls, with the seconds sampled in each. */
export function callTree(stacks: StallStacks): Tree {
  return { parent: stacks.parent, own: stacks.seconds };
}

/** Return each call's number of samples, including those of what it called. */
export function sampleCounts(stacks: StallStacks): number[] {
  return sums(stacks.parent, stacks.samples);
}

export function frameOf(stacks: StallStacks, node: number): StackFrame {
  return stacks.frames[stacks.frame[node]!]!;
}

/** A line of code in all stacks: its own seconds, and its seconds and samples with all calls in it. Recursion counts once. */
export interface LineTotal {
  readonly key: number;
  readonly frame: StackFrame;
  readonly own: number;
  readonly seconds: number;
  readonly samples: number;
}

export function lineTotals(stacks: StallStacks): LineTotal[] {
  const samples = sampleCounts(stacks);
  const byFrame = new Map<number, { own: number; seconds: number; samples: number }>();
  const callers: number[] = [];
  for (const box of boxes(callTree(stacks))) {
    callers.length = box.depth;
    const frame = stacks.frame[box.node]!;
    const total = byFrame.get(frame) ?? { own: 0, seconds: 0, samples: 0 };
    total.own += box.own;
    if (!callers.includes(frame)) {
      total.seconds += box.size;
      total.samples += samples[box.node]!;
    }
    byFrame.set(frame, total);
    callers.push(frame);
  }
  const lines = [...byFrame].map(([key, total]) => ({ key, frame: stacks.frames[key]!, ...total }));
  return lines.filter((line) => line.frame.kind !== "thread").sort((a, b) => b.own - a.own || b.seconds - a.seconds);
}

/** Return a frame's name: `CheckpointSaverHook.after_run`, `load_batch`, or a thread's name. */
export function frameName(frame: StackFrame): string {
  return frame.owner ? `${frame.owner}.${frame.function}` : frame.function;
}

/** Return a frame's place: `train.py:88`; "" for a thread. */
export function framePlace(frame: { readonly file: string; readonly line: number }): string {
  const name = frame.file.replaceAll("\\", "/").split("/").pop() ?? "";
  return name && frame.line ? `${name}:${frame.line}` : name;
}
