import { effectScope, nextTick, ref } from "vue";
import { describe, expect, it } from "vitest";
import { ClientError, type RequestOptions } from "@/client/client";
import { useAnswer } from "./answer";

async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await Promise.resolve();
  await nextTick();
}

describe("an answer", () => {
  it("is requested again when its key changes, and the old request is cancelled", async () => {
    const key = ref(1);
    const signals: AbortSignal[] = [];
    const resolvers: ((value: string) => void)[] = [];
    const request = (options: RequestOptions): Promise<string> => {
      if (options.signal) signals.push(options.signal);
      return new Promise((resolve) => resolvers.push(resolve));
    };
    const scope = effectScope();
    const answer = scope.run(() => useAnswer(() => key.value, request));
    key.value = 2;
    await settle();
    expect(signals.map((s) => s.aborted)).toEqual([true, false]);
    resolvers[0]?.("late");
    resolvers[1]?.("right");
    await settle();
    expect(answer?.data.value).toBe("right");
    scope.stop();
    expect(signals[1]?.aborted).toBe(true);
  });

  it("says what went wrong and can be retried", async () => {
    let times = 0;
    const scope = effectScope();
    const answer = scope.run(() =>
      useAnswer(
        () => 0,
        () => (times++ ? Promise.resolve("there") : Promise.reject(new Error("the trace is gone"))),
      ),
    );
    await settle();
    expect(answer?.error.value).toBe("the trace is gone");
    answer?.retry();
    await settle();
    expect(answer?.data.value).toBe("there");
    expect(answer?.error.value).toBe("");
    scope.stop();
  });

  it("tells a missing answer from a failed one", async () => {
    for (const [failure, missing] of [
      [new ClientError(404, "unknown", "There is no node 99."), true],
      [new ClientError(500, "storage", "The disk is gone."), false],
      [new TypeError("Failed to fetch"), false],
    ] as const) {
      const scope = effectScope();
      const answer = scope.run(() =>
        useAnswer(
          () => 0,
          () => Promise.reject(failure),
        ),
      );
      await settle();
      expect([answer?.error.value, answer?.missing.value]).toEqual([failure.message, missing]);
      scope.stop();
    }
  });
});
