/** What the analysis tabs have in common: the answer that they show, and rows that select their op on the timeline. */
import type { Analyses } from "@/client/messages";
import type { Answer } from "@/state/answer";
import type { TabProps } from "./tab";
import { useAnalysis } from "./useAnalysis";

interface Tab<T> {
  readonly answer: Answer<T>;
  /** Selects the row's op. A row without an op in the trace (-1) selects nothing. */
  readonly select: (row: { readonly node: number }) => void;
}

export function useTab<K extends keyof Analyses>(
  props: TabProps,
  emit: (event: "select", node: number) => void,
  path: K,
): Tab<Analyses[K]> {
  function select(row: { readonly node: number }): void {
    if (row.node >= 0) emit("select", row.node);
  }
  return { answer: useAnalysis(props, path), select };
}
