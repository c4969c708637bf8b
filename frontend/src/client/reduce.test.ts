import { describe, expect, it } from "vitest";
import { fakeJob, fakeRun, fakeSession, fakeState, fakeTrace } from "../../dev/fake";
import type { LiveMessage, Run, RunWithoutTraces } from "./messages";
import { emptyState, reduce } from "./reduce";

function withoutTraces({ traces: _, ...run }: Run): RunWithoutTraces {
  return run;
}

describe("reduce", () => {
  it("starts anew from a snapshot", () => {
    const lost = fakeState({ connection: "reconnecting", retryAt: 1, reason: "gone", runs: [fakeRun(7)] });
    const session = fakeSession();
    const next = reduce(lost, { type: "snapshot", payload: { session, runs: [], job: null } });
    expect(next).toEqual({ ...emptyState, session, connection: "open" });
  });

  it("adds a run, and replaces one at its position in the list", () => {
    const two = reduce(fakeState({ runs: [fakeRun(1)] }), { type: "run", payload: withoutTraces(fakeRun(2)) });
    const next = reduce(two, { type: "run", payload: withoutTraces(fakeRun(1, { steps: 12_399 })) });
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

  it("keeps traces that come before their run, in order, and a run's traces when the run is updated", () => {
    let state = fakeState({ runs: [] });
    for (const id of [2, 1]) state = reduce(state, { type: "trace", payload: fakeTrace(id) });
    state = reduce(state, { type: "run", payload: withoutTraces(fakeRun(1)) });
    expect(state.runs[0]?.traces.map((t) => t.id)).toEqual([1, 2]);
    expect(state.early).toEqual([]);
    state = reduce(state, { type: "run", payload: withoutTraces(fakeRun(1, { steps: 99_999 })) });
    expect(state.runs[0]?.steps).toBe(99_999);
    expect(state.runs[0]?.traces.map((t) => t.id)).toEqual([1, 2]);
  });

  it("does not count backwards", () => {
    const state = fakeState({ runs: [fakeRun(1, { steps: 100, last_s: 5 })] });
    const next = reduce(state, {
      type: "run",
      payload: withoutTraces(fakeRun(1, { steps: 98, last_s: 4, pending_traces: 1 })),
    });
    expect(next.runs[0]).toMatchObject({ steps: 100, last_s: 5, pending_traces: 1 });
  });

  it("applies changes of the session and of the job", () => {
    const ended = reduce(fakeState(), { type: "session", payload: fakeSession({ ended_at: 5 }) });
    expect(ended.session?.ended_at).toBe(5);
    expect(reduce(ended, { type: "job", payload: fakeJob }).job).toBe(fakeJob);
  });

  it("changes rows of the job at their positions, and adds traces", () => {
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

  it("keeps the message of a server that shuts down", () => {
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
