/** The findings that were shown since the page was loaded: a limit of the profiler is shown once, not on each trace. */
import type { Finding } from "@/client/messages";

/** Message -> the trace on which it was first shown. */
const seen = new Map<string, number>();

/** Return whether another trace has shown the same message before; remember the message. */
export function isRepeated({ message }: Finding, trace: number): boolean {
  const first = seen.get(message) ?? trace;
  seen.set(message, first);
  return first !== trace;
}
