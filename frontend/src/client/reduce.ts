/** Applies live messages to the state. Pure: returns a new state and leaves the old one unchanged. */
import type { SessionState } from "./client";
import type { Job, JobChanges, LiveMessage, RunWithoutTraces, Run, TraceRecord } from "./messages";

/** `early`: traces whose run is not known yet. The server sends a trace at once, but its run a little later. */
export interface LiveState extends SessionState {
  readonly early: readonly TraceRecord[];
}

export const emptyState: LiveState = {
  session: null,
  runs: [],
  job: null,
  connection: "connecting",
  retryAt: null,
  reason: "",
  early: [],
};

/** Return the message's run, but keep the known step counts if they are higher: a snapshot may be newer than the message. */
function newer(current: Run, update: RunWithoutTraces): RunWithoutTraces {
  if (update.steps >= current.steps) return update;
  const { steps, last_s, last_run_at, recent_s } = current;
  return { ...update, steps, last_s, last_run_at, recent_s };
}

function withRun(state: LiveState, update: RunWithoutTraces): LiveState {
  const current = state.runs.find((r) => r.id === update.id);
  if (current) {
    const run = { ...newer(current, update), traces: current.traces };
    return { ...state, runs: state.runs.map((r) => (r === current ? run : r)) };
  }
  const traces = state.early.filter((t) => t.run_id === update.id).sort((a, b) => a.id - b.id);
  const early = state.early.filter((t) => t.run_id !== update.id);
  return { ...state, runs: [...state.runs, { ...update, traces }], early };
}

function withTrace(state: LiveState, trace: TraceRecord): LiveState {
  const run = state.runs.find((r) => r.id === trace.run_id);
  if (!run) return { ...state, early: [...state.early.filter((t) => t.id !== trace.id), trace] };
  const traces = [...run.traces.filter((t) => t.id !== trace.id), trace].sort((a, b) => a.id - b.id);
  return { ...state, runs: state.runs.map((r) => (r === run ? { ...run, traces } : r)) };
}

function withoutTrace(state: LiveState, { id, run_id }: TraceRecord): LiveState {
  const without = (traces: readonly TraceRecord[]): TraceRecord[] => traces.filter((t) => t.id !== id);
  return {
    ...state,
    runs: state.runs.map((r) => (r.id === run_id ? { ...r, traces: without(r.traces) } : r)),
    early: without(state.early),
  };
}

/** Replace processes and traces of the same id in place, and add new traces. */
function withChanges(job: Job, { processes, traces }: JobChanges): Job {
  const changed = new Map(processes.map((p) => [p.id, p]));
  const all = new Map([...job.traces, ...traces].map((t) => [t.id, t]));
  return { ...job, processes: job.processes.map((p) => changed.get(p.id) ?? p), traces: [...all.values()] };
}

/** Make the compiler check that a switch handles every message. */
function assertNever(message: never): LiveState {
  throw new TypeError(`a message that this page does not know: ${JSON.stringify(message)}; reload the page`);
}

export function reduce(state: LiveState, message: LiveMessage): LiveState {
  switch (message.type) {
    case "snapshot":
      return { ...emptyState, ...message.payload, connection: "open" };
    case "session":
      return { ...state, session: message.payload };
    case "run":
      return withRun(state, message.payload);
    case "trace":
      return withTrace(state, message.payload);
    case "trace_removed":
      return withoutTrace(state, message.payload);
    case "job":
      return { ...state, job: message.payload };
    case "job_changes":
      return { ...state, job: state.job && withChanges(state.job, message.payload) };
    case "closing":
      return { ...state, connection: "closed", retryAt: null, reason: message.payload.message };
    default:
      return assertNever(message);
  }
}
