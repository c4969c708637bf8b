/** What the reader has been told of traces since the page was loaded: a limit of the profiler is said once, not on each trace. */
import type { Finding } from "@/client/messages";

/** Message -> the trace on which it was first shown. */
const seen = new Map<string, number>();

/** Whether another trace has said the same. */
export function isRepeated({ message }: Finding, trace: number): boolean {
  const first = seen.get(message) ?? trace;
  seen.set(message, first);
  return first !== trace;
}
