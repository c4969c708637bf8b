import { flushPromises, mount } from "@vue/test-utils";
import { describe, expect, it } from "vitest";
import { defineComponent, type Component, type WritableComputedRef } from "vue";
import { createMemoryHistory, createRouter } from "vue-router";
import { fakeRun, fakeSession, fakeState } from "../../dev/fake";
import type { Run } from "@/client/messages";
import { runName } from "./names";
import { sortRuns, splitRuns } from "./runs";
import { statusOf } from "./status";
import {
  flag,
  list,
  number,
  oneOf,
  parameterReader,
  readParameter,
  text,
  useParameter,
  withParameter,
  type Spelling,
} from "./url";

function roundTrip<T>(spelling: Spelling<T>, value: T): T {
  return readParameter(withParameter({ other: "1" }, "p", spelling, value), "p", spelling);
}

describe("parameters in the URL", () => {
  it("are read as they were written", () => {
    expect(roundTrip(text(), "a & b = /c/ µ")).toBe("a & b = /c/ µ");
    expect(roundTrip(number(), -0.25)).toBe(-0.25);
    expect(roundTrip(flag(), true)).toBe(true);
    expect(roundTrip(flag(true), false)).toBe(false);
    expect(roundTrip(oneOf(["a", "b"], "a"), "b")).toBe("b");
    expect(roundTrip(list(), ["a,b", "c%d"])).toEqual(["a,b", "c%d"]);
  });

  it("are left out if they have their initial value, and do not change others", () => {
    expect(withParameter({ p: "x", other: "1" }, "p", text(), "")).toEqual({ other: "1" });
    expect(withParameter({}, "p", number(), null)).toEqual({});
  });

  it("keep the same object until their own text changes", () => {
    const read = parameterReader("p", list());
    const before = read({ p: "a,b" });
    expect(read({ p: "a,b", view: "1-2" })).toBe(before);
    expect(read({ p: "a" })).toEqual(["a"]);
    expect(read({})).toEqual([]);
  });

  it("fall back to the initial value if the text is nonsense", () => {
    expect(readParameter({ p: "zebra" }, "p", number(3))).toBe(3);
    expect(readParameter({ p: "" }, "p", number())).toBeNull();
    expect(readParameter({ p: "c" }, "p", oneOf(["a", "b"], "a"))).toBe("a");
    expect(readParameter({ p: ["a", "b"] }, "p", text("x"))).toBe("x");
  });
});

describe("a parameter that is set while the next view still loads", () => {
  async function leaving() {
    const empty = defineComponent(() => () => null);
    const loads: { resolve(view: Component): void; reject(error: Error): void }[] = [];
    const load = (): Promise<Component> => new Promise((resolve, reject) => loads.push({ resolve, reject }));
    const routes = [
      { path: "/", component: empty },
      { path: "/next", component: load },
    ];
    const router = createRouter({ history: createMemoryHistory(), routes });
    await router.push("/");
    const parameter = { current: null as WritableComputedRef<string> | null };
    const setup = (): (() => null) => {
      parameter.current = useParameter("p", text());
      return () => null;
    };
    mount(defineComponent(setup), { global: { plugins: [router] } });
    const set = async (value: string): Promise<void> => {
      parameter.current!.value = value;
      await flushPromises();
    };
    router.onError(() => undefined);
    const left = router.push("/next").catch(() => undefined);
    await flushPromises();
    await set("lost");
    return { router, set, left, loading: loads[0], empty };
  }

  it("does not navigate back", async () => {
    const { router, set, left, loading, empty } = await leaving();
    loading.resolve(empty);
    await left;
    expect(router.currentRoute.value.fullPath).toBe("/next");
    await set("of the next view");
    expect(router.currentRoute.value.query).toEqual({ p: "of the next view" });
  });

  it("can be set again when that view could not be loaded", async () => {
    const { router, set, left, loading } = await leaving();
    loading.reject(new Error("the connection is lost"));
    await left;
    await set("here");
    expect(router.currentRoute.value.fullPath).toBe("/?p=here");
  });
});

describe("the status in one word", () => {
  it.each([
    [{ connection: "connecting" }, "Connecting"],
    [{ connection: "reconnecting" }, "Reconnecting"],
    [{ connection: "closed" }, "Closed"],
    [{ connection: "unauthorized" }, "Signed out"],
    [{ connection: "static" }, "File"],
    [{}, "Training"],
    [{ session: fakeSession({ active: false }) }, "Idle"],
    [{ session: fakeSession({ ended_at: 5 }) }, "Ended"],
    [{ session: fakeSession({ live: false }) }, "File"],
  ] as const)("%o: %s", (change, word) => {
    expect(statusOf(fakeState(change)).word).toBe(word);
  });
});

describe("runs", () => {
  it("are named by what they fetch, without the outputs' zeros", () => {
    expect(runName(fakeRun(1, { fetches: ["loss:0", "split:1"], title: "loss, split:1 (feeding x)" }))).toBe(
      "loss, split:1",
    );
    expect(runName(fakeRun(1, { fetches: [], title: "nothing" }))).toBe("nothing");
    expect(runName(fakeRun(1, { fetches: ["loss"], title: "old.pickle: loss" }))).toBe("old.pickle: loss");
  });

  it("are sorted in the order that was chosen", () => {
    const runs = [
      fakeRun(2, { steps: 5, mean_s: 9 }),
      fakeRun(1, { steps: 6, mean_s: 1 }),
      fakeRun(3, { steps: 1, mean_s: null }),
    ];
    const ids = (order: Parameters<typeof sortRuns>[1]): number[] => sortRuns(runs, order).map((r) => r.id);
    expect(ids("seen")).toEqual([1, 2, 3]);
    expect(ids("time")).toEqual([2, 1, 3]);
    expect(ids("steps")).toEqual([1, 2, 3]);
  });

  it("that only initialize or save are apart from loops, unless they are traced or nothing is a loop", () => {
    const one = (id: number, steps: number, traces: readonly unknown[] = []): Run =>
      fakeRun(id, { steps, traces: traces as Run["traces"], slow_steps: { ...fakeRun(id).slow_steps, count: 0 } });
    const ids = (runs: readonly Run[]): number[][] =>
      [splitRuns(runs).loops, splitRuns(runs).rare].map((part) => part.map((run) => run.id));
    expect(ids([one(1, 1), one(2, 2000), one(3, 2), one(4, 10), one(5, 1, [{}])])).toEqual([
      [2, 4, 5],
      [1, 3],
    ]);
    expect(ids([one(1, 1), one(2, 5)])).toEqual([[1, 2], []]);
    expect(ids([one(1, 1), one(2, 90), one(3, 2)])).toEqual([[2, 3], [1]]);
  });
});
