/** The findings above a trace. */
import { mount, type VueWrapper } from "@vue/test-utils";
import { describe, expect, it } from "vitest";
import type { Finding } from "@/client/messages";
import FindingsBanner from "./FindingsBanner.vue";

const limit: Finding = {
  code: "partial",
  severity: "warning",
  message: "The profiler left out cheap ops.",
  remedy: "None.",
};
const cut: Finding = { code: "cut", severity: "error", message: "The trace is cut off.", remedy: "Trace less." };

function shown(trace: number, findings: readonly Finding[]): VueWrapper {
  return mount(FindingsBanner, { props: { findings, trace } });
}

describe("the findings of a trace", () => {
  it("say a limit of the profiler in full once, and in one line on the next traces", () => {
    expect(shown(1, [limit]).find(".brief").exists()).toBe(false);
    expect(shown(2, [limit]).find(".brief").exists()).toBe(true);
    expect(shown(2, [limit]).text()).toContain("The profiler left out cheap ops.");
    expect(shown(1, [limit]).find(".brief").exists()).toBe(false); // on the trace where it was said first, it stays in full
  });

  it("say only on the first trace what no profile has", () => {
    const profile: Finding = { ...limit, severity: "info", message: "A profile has no scheduling times." };
    expect(shown(1, [profile]).text()).toContain("no scheduling times");
    expect(shown(2, [profile]).text()).toBe("");
    expect(shown(2, [profile, cut]).text()).toContain("The trace is cut off.");
    expect(shown(1, [profile]).text()).toContain("no scheduling times");
  });

  it("have their remedies behind How to fix, which opens with the other findings", async () => {
    const banner = shown(4, [cut, { ...limit, message: "The profiler left out copies." }]);
    expect(banner.find("details").text()).toContain("Trace less.");
    expect(banner.find("details").attributes("open")).toBeUndefined();
    await banner.find('[data-testid="findings-more"]').trigger("click");
    expect(banner.findAll("details").map((each) => each.attributes("open"))).toEqual(["", ""]);
  });

  it("say on each trace that it is wrong, before repeated findings", () => {
    shown(1, [limit, cut]);
    const again = shown(3, [limit, cut]);
    expect(again.find(".brief").exists()).toBe(false);
    expect(again.text()).toContain("The trace is cut off.");
  });
});
