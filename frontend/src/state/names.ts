/** How runs and their parts are named on the page. */
import type { Run } from "@/client/messages";

/** A tensor's name for people: nearly all are the first output of their op, `loss:0`, and need not say it. */
export function tensorName(name: string): string {
  return name.replace(/:0$/, "");
}

/** A run's heading: its fetches, which tell runs apart; feeds and options stand below. */
export function runName(run: Run): string {
  const names = run.fetches.map(tensorName);
  const [first] = names;
  return first !== undefined && run.title.startsWith(first.slice(0, 12)) ? names.join(", ") : run.title;
}

/** The first few of many names, and how many more there are. */
export function firstOf(names: readonly string[], most: number): { shown: readonly string[]; more: number } {
  const shown = names.slice(0, most);
  return { shown, more: names.length - shown.length };
}
