import { describe, expect, it } from "vitest";
import { fakeJob, fakeRun, fakeSession, fakeState, fakeTrace } from "../../dev/fake";
import type { LiveMessage } from "./messages";
import { emptyState, RECENT_STEPS, reduce } from "./reduce";

describe("reduce", () => {
  it("starts anew from a snapshot", () => {
    const lost = fakeState({ connection: "reconnecting", retryAt: 1, reason: "gone", runs: [fakeRun(7)] });
    const session = fakeSession();
    const next = reduce(lost, { type: "snapshot", payload: { session, runs: [], job: null } });
    expect(next).toEqual({ ...emptyState, session, connection: "open" });
  });

  it("adds a run and replaces one, in place", () => {
    const two = reduce(fakeState({ runs: [fakeRun(1)] }), { type: "run", payload: fakeRun(2) });
    const next = reduce(two, { type: "run", payload: fakeRun(1, { steps: 12_399 }) });
    expect(next.runs.map((r) => [r.id, r.steps])).toEqual([
      [1, 12_399],
      [2, 12_345],
    ]);
  });

  it("keeps a run's traces in order, each once", () => {
    let state = fakeState({ runs: [fakeRun(1)] });
    for (const id of [2, 1, 2]) state = reduce(state, { type: "trace", payload: fakeTrace(id, { note: `n${id}` }) });
    expect(state.runs[0]?.traces.map((t) => t.id)).toEqual([1, 2]);
    state = reduce(state, { type: "trace_removed", payload: fakeTrace(1) });
    expect(state.runs[0]?.traces.map((t) => t.id)).toEqual([2]);
  });

  it("keeps a trace that comes before its run, and one that an older message of the run lacks", () => {
    let state = reduce(fakeState({ runs: [] }), { type: "trace", payload: fakeTrace(1) });
    state = reduce(state, { type: "run", payload: fakeRun(1) });
    expect(state.runs[0]?.traces.map((t) => t.id)).toEqual([1]);
    expect(state.early).toEqual([]);
    state = reduce(state, { type: "trace", payload: fakeTrace(2, { note: "new" }) });
    state = reduce(state, { type: "run", payload: fakeRun(1, { traces: [fakeTrace(2, { note: "old" })] }) });
    expect(state.runs[0]?.traces.map((t) => [t.id, t.note])).toEqual([
      [1, ""],
      [2, "new"],
    ]);
  });

  it("does not believe that a removed trace is back", () => {
    let state = reduce(fakeState({ runs: [fakeRun(1, { traces: [fakeTrace(1)] })] }), {
      type: "trace_removed",
      payload: fakeTrace(1),
    });
    state = reduce(state, { type: "run", payload: fakeRun(1, { traces: [fakeTrace(1)] }) });
    expect(state.runs[0]?.traces).toEqual([]);
  });

  it("does not count backwards", () => {
    const state = fakeState({ runs: [fakeRun(1, { steps: 100, last_s: 5 })] });
    const next = reduce(state, { type: "run", payload: fakeRun(1, { steps: 98, last_s: 4, pending_traces: 1 }) });
    expect(next.runs[0]).toMatchObject({ steps: 100, last_s: 5, pending_traces: 1 });
  });

  it("counts steps once, whether the run's own update came before or not", () => {
    const before = fakeState({ runs: [fakeRun(1, { steps: 10, recent_s: [1, 2] })] });
    const steps: LiveMessage = {
      type: "steps",
      payload: { run_id: 1, first_step: 10, start_at: [5, 6, 7], duration_s: [2, 3, 4] },
    };
    const once = reduce(before, steps);
    expect(once.runs[0]).toMatchObject({ steps: 12, recent_s: [1, 2, 3, 4], last_s: 4, last_run_at: 7 });
    expect(reduce(once, steps).runs[0]).toBe(once.runs[0]);
  });

  it("remembers as many steps as the sparkline shows", () => {
    const start = fakeState({ runs: [fakeRun(1, { steps: 0, recent_s: [] })] });
    const duration_s = Array.from({ length: 200 }, (_, i) => i);
    const payload = { run_id: 1, first_step: 1, start_at: duration_s, duration_s };
    const next = reduce(start, { type: "steps", payload });
    expect(next.runs[0]?.recent_s).toHaveLength(RECENT_STEPS);
    expect(next.runs[0]?.recent_s.at(-1)).toBe(199);
  });

  it("takes the session's and the job's news", () => {
    const ended = reduce(fakeState(), { type: "session", payload: fakeSession({ ended_at: 5 }) });
    expect(ended.session?.ended_at).toBe(5);
    expect(reduce(ended, { type: "job", payload: fakeJob }).job).toBe(fakeJob);
  });

  it("changes rows of the job in place, and adds traces", () => {
    const [first, second, ...rest] = fakeJob.processes;
    const [trace] = fakeJob.traces;
    if (!first || !second || !trace) throw new Error("the job is empty");
    const stepped = { ...second, steps: second.steps + 1 };
    const stranger = { ...first, id: "nobody knows it" };
    const traces = [
      { ...trace, state: "ready" as const },
      { ...trace, id: 99 },
    ];
    const message: LiveMessage = { type: "job_changes", payload: { processes: [stepped, stranger], traces } };
    const next = reduce(fakeState({ job: fakeJob }), message).job;
    expect(next?.processes).toEqual([first, stepped, ...rest]);
    expect(next?.traces.map((t) => t.id)).toEqual([...fakeJob.traces.map((t) => t.id), 99]);
    expect(next?.traces[0]?.state).toBe("ready");
    expect(reduce(fakeState({ job: null }), message).job).toBeNull();
  });

  it("keeps the server's last word", () => {
    const payload = { code: "shutdown", message: "The web server was shut down." };
    expect(reduce(fakeState(), { type: "closing", payload })).toMatchObject({
      connection: "closed",
      reason: payload.message,
    });
  });

  it("changes nothing in the state it was given, and refuses what it does not know", () => {
    const state = Object.freeze(fakeState({ runs: Object.freeze([Object.freeze(fakeRun(1))]) as never }));
    reduce(state, { type: "trace", payload: fakeTrace(1) });
    expect(state.runs[0]?.traces).toEqual([]);
    expect(() => reduce(emptyState, { type: "news" } as unknown as LiveMessage)).toThrow(/reload/);
  });
});
