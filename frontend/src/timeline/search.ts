/** Search over names and op types. Each distinct string is tested once, in short portions of work, so that typing never waits. */
import type { TimelineModel } from "./model";
import { pattern } from "./linearRegex";

export type Query = { kind: "empty" } | { kind: "invalid"; message: string } | { kind: "ready"; test: Test };
type Test = (text: string) => boolean;

export interface Matches {
  /** [slices] 1: the slice matches. */
  mask: Uint8Array;
  /** The matching slices, by start. */
  slices: Uint32Array;
}

/** Parse a search: a regular expression if `regex`, else a text that is searched for literally, ignoring case. */
export function parseQuery(text: string, regex: boolean): Query {
  if (text === "") return { kind: "empty" };
  if (!regex) {
    const wanted = text.toLowerCase();
    return { kind: "ready", test: (candidate) => candidate.toLowerCase().includes(wanted) };
  }
  try {
    return { kind: "ready", test: pattern(text) };
  } catch (error) {
    return { kind: "invalid", message: error instanceof Error ? error.message : String(error) };
  }
}

/** How long a portion may take before other code of the page may run. */
const PORTION_MS = 8;

/** Let other code of the page run. */
const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

async function testAll(
  length: number,
  get: (i: number) => string,
  test: Test,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const flags = new Uint8Array(length);
  let until = performance.now() + PORTION_MS;
  for (let i = 0; i < length; i++) {
    if (test(get(i))) flags[i] = 1;
    if ((i & 1023) !== 1023 || performance.now() < until) continue;
    await pause();
    signal.throwIfAborted();
    until = performance.now() + PORTION_MS;
  }
  return flags;
}

/** Return all slices whose name or op type passes the test. Rejects with the signal's reason if a newer search aborts it. */
export async function search(model: TimelineModel, test: Test, signal: AbortSignal): Promise<Matches> {
  const names = await testAll(model.names.length, (i) => model.names.get(i), test, signal);
  const ops = await testAll(model.ops.length, (i) => model.ops.get(i), test, signal);
  const mask = new Uint8Array(model.count);
  let count = 0;
  for (let i = 0; i < model.count; i++) {
    if (names[model.name[i]] === 1 || ops[model.op[i]] === 1) {
      mask[i] = 1;
      count++;
    }
  }
  return { mask, slices: byStart(model, mask, count) };
}

function byStart(model: TimelineModel, mask: Uint8Array, count: number): Uint32Array {
  const slices = new Uint32Array(count);
  for (let i = 0, k = 0; i < model.count; i++) if (mask[i] === 1) slices[k++] = i;
  return slices.sort((a, b) => model.start[a] - model.start[b] || a - b);
}

/** Return the match after (or before) a slice in time; wraps around at the ends. -1 if there are no matches. */
export function nextMatch(model: TimelineModel, matches: Matches, from: number, forward: boolean): number {
  const { slices } = matches;
  if (slices.length === 0) return -1;
  if (from < 0) return forward ? slices[0] : slices[slices.length - 1];
  const before = (a: number, b: number): boolean =>
    model.start[a] < model.start[b] || (model.start[a] === model.start[b] && a < b);
  let low = 0;
  let high = slices.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (before(slices[middle], from)) low = middle + 1;
    else high = middle;
  }
  if (!forward) return slices[(low - 1 + slices.length) % slices.length];
  return slices[(slices[low] === from ? low + 1 : low) % slices.length];
}

/** Return the number of a slice among the matches, from 1 on; 0 if it is no match. */
export function matchNumber(matches: Matches, slice: number): number {
  return matches.mask[slice] === 1 ? matches.slices.indexOf(slice) + 1 : 0;
}
