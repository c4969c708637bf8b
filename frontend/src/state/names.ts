/** How runs and their parts are named on the page. */
import type { Run } from "@/client/messages";

/** A run's heading: its fetches, which tell runs apart; feeds and options stand below. */
export function runName(run: Run): string {
  const [first] = run.fetches;
  return first !== undefined && run.title.startsWith(first.slice(0, 12)) ? run.fetches.join(", ") : run.title;
}

/** The first few of many names, and how many more there are. */
export function firstOf(names: readonly string[], most: number): { shown: readonly string[]; more: number } {
  const shown = names.slice(0, most);
  return { shown, more: names.length - shown.length };
}
