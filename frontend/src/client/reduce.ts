/** How the live messages change the state. Pure: a new state comes out, the old one stays as it was. */
import type { SessionState } from "./client";
import type { Job, JobChanges, LiveMessage, NewSteps, Run, TraceRecord } from "./messages";

/** The sparkline's length, as the server sends it. */
export const RECENT_STEPS = 60;

/**
 * A trace is told at once, counts a little later: a run's message may be older than the trace's that came before it. What
 * came early is kept until its run is known, and what was removed is not believed to be back (numbers are never reused).
 */
export interface LiveState extends SessionState {
  readonly early: readonly TraceRecord[];
  readonly removed: ReadonlySet<number>;
}

export const emptyState: LiveState = {
  session: null,
  runs: [],
  job: null,
  connection: "connecting",
  retryAt: null,
  reason: "",
  early: [],
  removed: new Set(),
};

/** The run as told now, without going back behind what is known already. */
function newer(current: Run | undefined, update: Run): Run {
  if (!current || update.steps >= current.steps) return update;
  const { steps, last_s, last_run_at, recent_s } = current;
  return { ...update, steps, last_s, last_run_at, recent_s };
}

function withRun(state: LiveState, update: Run): LiveState {
  const current = state.runs.find((r) => r.id === update.id);
  const early = state.early.filter((t) => t.run_id === update.id);
  const traces = new Map([...update.traces, ...(current?.traces ?? []), ...early].map((t) => [t.id, t]));
  const run = {
    ...newer(current, update),
    traces: [...traces.values()].filter((t) => !state.removed.has(t.id)).sort((a, b) => a.id - b.id),
  };
  return {
    ...state,
    runs: current ? state.runs.map((r) => (r === current ? run : r)) : [...state.runs, run],
    early: early.length ? state.early.filter((t) => t.run_id !== update.id) : state.early,
  };
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
    removed: new Set([...state.removed, id]),
  };
}

function withSteps(run: Run, steps: NewSteps): Run {
  const overlap = run.steps + 1 - steps.first_step;
  const fresh = overlap > 0 ? steps.duration_s.slice(overlap) : steps.duration_s;
  const last = fresh.at(-1);
  const lastStart = steps.start_at.at(-1);
  if (last === undefined) return run;
  return {
    ...run,
    steps: Math.max(run.steps, steps.first_step + steps.duration_s.length - 1),
    last_s: last,
    last_run_at: lastStart ?? run.last_run_at,
    recent_s: [...run.recent_s, ...fresh].slice(-RECENT_STEPS),
  };
}

/** Rows of the same id are replaced, in place. */
function withChanges(job: Job, { processes, traces }: JobChanges): Job {
  const changed = new Map(processes.map((p) => [p.id, p]));
  const all = new Map([...job.traces, ...traces].map((t) => [t.id, t]));
  return { ...job, processes: job.processes.map((p) => changed.get(p.id) ?? p), traces: [...all.values()] };
}

function never(message: never): LiveState {
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
    case "steps": {
      const steps = message.payload;
      return { ...state, runs: state.runs.map((r) => (r.id === steps.run_id ? withSteps(r, steps) : r)) };
    }
    case "job":
      return { ...state, job: message.payload };
    case "job_changes":
      return { ...state, job: state.job && withChanges(state.job, message.payload) };
    case "closing":
      return { ...state, connection: "closed", retryAt: null, reason: message.payload.message };
    default:
      return never(message);
  }
}
