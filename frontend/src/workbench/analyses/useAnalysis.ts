/** The answer of one analysis of the trace that a tab shows. */
import type { Analyses } from "@/client/messages";
import type { Parameters } from "@/client/client";
import { useAnswer, type Answer } from "@/state/answer";
import { useSession } from "@/state/session";
import type { TabProps } from "./tab";

/** Request the analysis now, and again when the trace or the parameters change. */
export function useAnalysis<K extends keyof Analyses>(
  props: TabProps,
  path: K,
  parameters: () => Parameters = () => ({}),
): Answer<Analyses[K]> {
  const { client } = useSession();
  return useAnswer(
    () => [props.trace, parameters()],
    (options) => client.analysis(props.trace, path, parameters(), options),
  );
}
