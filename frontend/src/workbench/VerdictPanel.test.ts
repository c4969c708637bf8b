/** The verdict's sentences, as a reader sees them. */
import { mount, type VueWrapper } from "@vue/test-utils";
import { describe, expect, it } from "vitest";
import { shallowRef } from "vue";
import type { Evidence, Sentence, Verdict } from "@/client/messages";
import type { Answer } from "@/state/answer";
import { shareInWords } from "./shareInWords";
import VerdictPanel from "./VerdictPanel.vue";

function sentence(code: string, share: number, evidence: Evidence): Sentence {
  return { code, text: `${code} it is.`, advice: "", share, numbers: {}, evidence };
}
const sentences = [
  { ...sentence("one_op", 0.83, { nodes: [7] }), advice: "Use a smaller kernel." },
  sentence("between_steps", 0.3, { nodes: [] }),
  sentence("balanced", 0.5, { nodes: [], tab: "ops" }),
];
function answer(error: string, missing: boolean): Answer<Verdict> {
  const data: Verdict = { sentences, step_ns: 45.6e6, whole_ns: 50e6, shares_of: "", findings: [] };
  return {
    data: shallowRef(error ? null : data),
    error: shallowRef(error),
    loading: shallowRef(false),
    missing: shallowRef(missing),
    retry: () => undefined,
  };
}
function show(error = "", missing = false): VueWrapper {
  return mount(VerdictPanel, { props: { answer: answer(error, missing), facts: "" } });
}

describe("the verdict", () => {
  it("makes a button of a sentence whose evidence can be shown, and of no other", async () => {
    const page = show();
    const elements = page.findAll(".sentence");
    expect(elements.map(({ element }) => element.tagName)).toEqual(["BUTTON", "DIV", "BUTTON"]);
    for (const element of elements) await element.trigger("click");
    expect(page.emitted("follow")).toEqual([[sentences[0]!.evidence], [sentences[2]!.evidence]]);
  });

  it("says what its percentages are of", () => {
    expect(show().find(".facts").text()).toBe("percentages of 50.0\u202fms, which do not add up");
    const one: Verdict = { sentences: [sentences[0]!], step_ns: 1, whole_ns: 1e6, shares_of: "", findings: [] };
    const alone = mount(VerdictPanel, {
      props: { answer: { ...answer("", false), data: shallowRef(one) }, facts: "" },
    });
    expect(alone.find(".facts").text()).toBe("percentages of 1.00\u202fms");
    expect(alone.find(".share").text()).toContain("to gain, at most");
    const empty: Verdict = {
      sentences: [sentence("no_ops", 0, { nodes: [] })],
      step_ns: 1,
      whole_ns: 1,
      shares_of: "",
      findings: [],
    };
    const none: Answer<Verdict> = { ...answer("", false), data: shallowRef(empty) };
    const page = mount(VerdictPanel, { props: { answer: none, facts: "" } });
    expect(page.find("[data-testid=whole]").exists()).toBe(false);
    expect(show("It broke.").find("[data-testid=whole]").exists()).toBe(false);
  });

  it("promises no limit for what compiling eager ops saves", () => {
    // A Keras step of 21 ms, 79% of such a step between its ops, took 1.1 ms compiled.
    expect(shareInWords("eager_ops")).toContain("may save more");
    expect(shareInWords("one_op")).toContain("at best");
  });

  it("keeps advice, if there is any, behind How to fix", () => {
    const fixes = show().findAll("details");
    expect(fixes.map((fix) => fix.find("summary").text())).toEqual(["How to fix"]);
    expect(fixes[0]!.attributes("open")).toBeUndefined();
    expect(fixes[0]!.find("p").text()).toBe("Use a smaller kernel.");
  });

  it("says what a sentence's share is of", () => {
    const titles = show()
      .findAll(".share")
      .map((share) => share.attributes("title"));
    expect(titles).toEqual([
      "The part of the step that would go away, at best. Two sentences may name the same time: their parts do not add up.",
      "The part of the time from one step to the next that would go away, at best",
      "The part of the step that computes",
    ]);
  });

  it("can be requested again after an error, but not after a 404", () => {
    expect(show("the server is busy").text()).toContain("Try again");
    const missing = show("there is no trace 3", true);
    expect(missing.text()).toContain("there is no trace 3");
    expect(missing.find("button.button").exists()).toBe(false);
  });
});
