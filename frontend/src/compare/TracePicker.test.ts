/** The text that a closed list shows of a trace. */
import { mount } from "@vue/test-utils";
import { describe, expect, it } from "vitest";
import { fakeRun, fakeTrace } from "../../dev/fake";
import TracePicker from "./TracePicker.vue";

const [train, evaluate] = [1, 2].map((id) =>
  fakeRun(id, { title: `run ${id}`, definition: "train.py:1", traces: [fakeTrace(id, { run_id: id, step: 50 })] }),
) as [ReturnType<typeof fakeRun>, ReturnType<typeof fakeRun>];

function texts(...runs: readonly ReturnType<typeof fakeRun>[]): string[] {
  const picker = mount(TracePicker, { props: { label: "A", runs, modelValue: 1 } });
  return picker.findAll("optgroup option").map((option) => option.text().split(" · ")[0]!);
}

describe("the choice of a trace", () => {
  it("names the run to tell apart equal step numbers of two runs", () => {
    expect(texts(train, evaluate)).toEqual(["Step 50 of run 1", "Step 50 of run 2"]);
  });

  it("names no run where only one has traces", () => {
    expect(texts(train, { ...evaluate, traces: [] })).toEqual(["Step 50"]);
  });
});
