/** Which traces are flagged in the list of a run's traces. */
import { describe, expect, it } from "vitest";
import { fakeTrace } from "../../dev/fake";
import type { Finding } from "@/client/messages";
import { flagText, traceFlags } from "./traceFlags";

const cut: Finding = { code: "truncated", severity: "warning", message: "The trace is cut.", remedy: "Trace less." };
const hint: Finding = { ...cut, severity: "info", message: "No graph." };
/** Five traced steps; the last took 3 times as long as the others. All are slower than the median of untraced steps. */
const traces = [1, 2, 3, 4, 5].map((id) => fakeTrace(id, { duration_s: id === 5 ? 0.3 : 0.1, median_s: 0.03 }));
const words = (id: number): string[] => traceFlags(traces[id - 1]!, traces, []).map(flagText);

describe("the flags of a run's traces", () => {
  it("call a step slow if it took far longer than the run's other traced steps", () => {
    expect(words(5)).toEqual(["Slow: 3.00× the median of the run's 4 other traced steps, 100\u202fms"]);
    expect(words(2)).toEqual([]);
  });

  it("call no step slow if there are too few, or if its time is not known", () => {
    expect(traceFlags(traces[4]!, traces.slice(2), [])).toEqual([]);
    expect(traceFlags({ ...traces[4]!, duration_s: null }, traces, [])).toEqual([]);
  });

  it("say what a trace lacks, but leave out mere hints", () => {
    const flag = (change: object): string[] => traceFlags({ ...traces[0]!, ...change }, traces, []).map(flagText);
    expect(flag({ findings: [cut, hint] })).toEqual(["Incomplete: The trace is cut."]);
    expect(flag({ findings: [hint] })).toEqual([]);
    expect(flag({ findings: [{ ...cut, severity: "error", message: "Damaged." }], state: "broken" })).toEqual([
      "Cannot be read: Damaged.",
    ]);
  });

  it("name the slow step that was traced, and the first step", () => {
    const first = { ...traces[0]!, step: 1 };
    const stall = { trace_id: 1, text: "Garbage collection" };
    expect(traceFlags(first, traces, [stall]).map((flag) => flag.title)).toEqual(["First step", "Slow step"]);
    expect(traceFlags(traces[1]!, traces, [stall])).toEqual([]);
  });
});
