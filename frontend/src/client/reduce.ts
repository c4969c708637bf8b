/** How the live messages change the state. Pure: a new state comes out, the old one stays as it was. */
import type { SessionState } from "./client";
import type { LiveMessage, NewSteps, Run, TraceRecord } from "./messages";

/** The sparkline's length, as the server sends it. */
export const RECENT_STEPS = 60;

export const emptyState: SessionState = {
  session: null,
  runs: [],
  job: null,
  connection: "connecting",
  retryAt: null,
  reason: "",
};

function withRun(runs: readonly Run[], run: Run): Run[] {
  const known = runs.some((r) => r.id === run.id);
  return known ? runs.map((r) => (r.id === run.id ? run : r)) : [...runs, run];
}

function withTrace(run: Run, trace: TraceRecord): Run {
  const others = run.traces.filter((t) => t.id !== trace.id);
  return { ...run, traces: [...others, trace].sort((a, b) => a.id - b.id) };
}

function withSteps(run: Run, steps: NewSteps): Run {
  const known = run.steps + 1 - steps.first_step;
  const fresh = known > 0 ? steps.duration_s.slice(known) : steps.duration_s;
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

function never(message: never): SessionState {
  throw new TypeError(`a message that this page does not know: ${JSON.stringify(message)}; reload the page`);
}

export function reduce(state: SessionState, message: LiveMessage): SessionState {
  switch (message.type) {
    case "snapshot":
      return { ...message.payload, connection: "open", retryAt: null, reason: "" };
    case "session":
      return { ...state, session: message.payload };
    case "run":
      return { ...state, runs: withRun(state.runs, message.payload) };
    case "trace": {
      const trace = message.payload;
      return { ...state, runs: state.runs.map((r) => (r.id === trace.run_id ? withTrace(r, trace) : r)) };
    }
    case "trace_removed": {
      const gone = message.payload.id;
      return {
        ...state,
        runs: state.runs.map((r) =>
          r.id === message.payload.run_id ? { ...r, traces: r.traces.filter((t) => t.id !== gone) } : r,
        ),
      };
    }
    case "steps": {
      const steps = message.payload;
      return { ...state, runs: state.runs.map((r) => (r.id === steps.run_id ? withSteps(r, steps) : r)) };
    }
    case "job":
      return { ...state, job: message.payload };
    case "closing":
      return { ...state, connection: "closed", retryAt: null, reason: message.payload.message };
    default:
      return never(message);
  }
}
