/** How runs and their parts are named on the page. */
import type { AskedBy, Run, Stall, TraceRecord } from "@/client/messages";
import { formatCount, formatSeconds } from "@/format";

/** Return a tensor's name without `:0`, which says little: nearly all tensors are the first output of their op. */
export function tensorName(name: string): string {
  return name.replace(/:0$/, "");
}

/** Return a run's heading: the fetches of its session.run if its title begins with the first of them, else its title. */
export function runName(run: Run): string {
  if (run.definition) return run.title;
  const names = run.fetches.map(tensorName);
  const [first] = names;
  return first !== undefined && run.title.startsWith(first.slice(0, 12)) ? names.join(", ") : run.title;
}

/** Return a command without the script's folders: a long path would hide the script's name and arguments. */
export function scriptName(command: string): string {
  return command.replace(/^\S*\//, "");
}

/** Return at most `limit` names, the first ones, and how many more there are. */
export function firstOf(names: readonly string[], limit: number): { shown: readonly string[]; more: number } {
  const shown = names.slice(0, limit);
  return { shown, more: names.length - shown.length };
}

/** Return a trace's heading. A trace that was loaded without a session has no step number. */
export function traceName(trace: Pick<TraceRecord, "id" | "step">): string {
  return trace.step !== null ? `Step ${formatCount(trace.step)}` : `Trace ${trace.id}`;
}

/** Return a trace's name within a sentence. */
export function traceInWords(trace: Pick<TraceRecord, "id" | "step">): string {
  return trace.step === null ? `trace ${trace.id}` : `the trace of step ${formatCount(trace.step)}`;
}

/** Why a step was traced. */
export const ASKED_BY: Record<AskedBy, string> = {
  user: "asked for here",
  global: "by tracing every step",
  script: "by the script's own RunOptions",
  slow: "because it was expected to be slow",
};

/** What a traced step's time is compared with in the lists. */
export const VS_MEDIAN =
  "The traced step's time against the median of the run's untraced steps, as it was when this step was traced";

/** Return whether a run has traces but no step count (a file of one trace): its steps are unknown, not 0. */
export function hasUnknownSteps(run: Run): boolean {
  return run.steps === 0 && run.traces.length > 0;
}

/** Return a slow step's heading: `Step 97: 1.20 s`, `Before step 26 (call 2,211 of all signatures): 310 ms`. */
export function stallHeading(stall: Stall): string {
  const step = stall.step_text;
  const what = stall.where === "inside" ? step[0]!.toUpperCase() + step.slice(1) : `Before ${step}`;
  return `${what}: ${formatSeconds(stall.duration_s)}`;
}

/** A tooltip that says why a slow step may be longer than the longest step. */
export const WITHOUT_BETWEEN =
  "A step's time has no time between steps: a slow step that is long before the step may take longer than the longest step.";
