import { describe, expect, it, vi } from "vitest";
import { effectScope, nextTick, ref, shallowRef } from "vue";
import type { Client } from "@/client/client";
import { modelOf } from "../../dev/timeline";
import type { TimelineModel } from "@/timeline/model";
import type { TraceState } from "@/timeline/state";
import { useCriticalPath } from "./useCriticalPath";

function rig(critical: boolean): { state: TraceState; model: TimelineModel; analysis: ReturnType<typeof vi.fn> } {
  const model = modelOf({
    rows: [[0, 10, 20].map((start) => ({ start, duration: 5, critical: critical && start === 0 }))],
  });
  const analysis = vi.fn().mockResolvedValue({ steps: [{ node: 1 }, { node: 2 }, { node: 99 }] });
  const state = { trace: 3, model: shallowRef(model), highlight: ref("none"), marks: ref(0) } as unknown as TraceState;
  effectScope().run(() => useCriticalPath({ analysis } as unknown as Client, state));
  return { state, model, analysis };
}

describe("the critical path on the timeline", () => {
  it("is requested once, when it is highlighted", async () => {
    const { state, model, analysis } = rig(false);
    expect(analysis).not.toHaveBeenCalled();
    state.highlight.value = "critical";
    await vi.waitFor(() => expect(state.marks.value).toBe(1));
    expect([...model.critical]).toEqual([0, 1, 1]);
    state.highlight.value = "none";
    await nextTick();
    state.highlight.value = "critical";
    await nextTick();
    expect(analysis).toHaveBeenCalledOnce();
  });

  it("is not requested if the timeline came with it", async () => {
    const { state, analysis } = rig(true);
    state.highlight.value = "critical";
    await nextTick();
    expect(analysis).not.toHaveBeenCalled();
  });
});
