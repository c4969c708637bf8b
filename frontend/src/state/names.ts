/** How runs and their parts are named on the page. */
import type { AskedBy, Run, Stall, TraceRecord } from "@/client/messages";
import { formatCount, formatSeconds } from "@/format";

/** A tensor's name for people: `loss:0` is shown as `loss`, for nearly all are the first output of their op. */
export function tensorName(name: string): string {
  return name.replace(/:0$/, "");
}

/** A run's heading: a function's title, or what a session.run fetches, which tells runs apart; the rest stands below. */
export function runName(run: Run): string {
  if (run.definition) return run.title;
  const names = run.fetches.map(tensorName);
  const [first] = names;
  return first !== undefined && run.title.startsWith(first.slice(0, 12)) ? names.join(", ") : run.title;
}

/** What was started, without the script's folders: at the end of a long path they would hide its name and arguments. */
export function scriptName(command: string): string {
  return command.replace(/^\S*\//, "");
}

/** The first few of many names, and how many more there are. */
export function firstOf(names: readonly string[], most: number): { shown: readonly string[]; more: number } {
  const shown = names.slice(0, most);
  return { shown, more: names.length - shown.length };
}

/** A trace's heading; one that came from a file alone has no step number. */
export function traceName(trace: Pick<TraceRecord, "id" | "step">): string {
  return trace.step !== null ? `Step ${formatCount(trace.step)}` : `Trace ${trace.id}`;
}

/** A trace within a sentence. */
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

/** The run of a file with one trace has no step count: its steps are unknown, not 0. */
export function hasUnknownSteps(run: Run): boolean {
  return run.steps === 0 && run.traces.length > 0;
}

/** `Step 97: 1.20 s`, `Before step 26 (call 2,211 of all signatures): 310 ms`. */
export function stallHeading(stall: Stall): string {
  const step = stall.step_text;
  const what = stall.where === "inside" ? step[0]!.toUpperCase() + step.slice(1) : `Before ${step}`;
  return `${what}: ${formatSeconds(stall.duration_s)}`;
}

/** What a step's time is not, where a slow step is longer than the longest one. */
export const WITHOUT_BETWEEN =
  "A step's time has no time between steps: a slow step that is long before the step may take longer than the longest step.";
