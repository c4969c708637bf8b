import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Ask } from "./client";
import type { Timeline } from "./messages";
import { Prepared } from "./prepared";

interface Asked {
  trace: number;
  ask: Ask;
  resolve: (message: Timeline) => void;
  reject: (error: Error) => void;
}

let asked: Asked[];
let prepared: Prepared;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  prepared = new Prepared(
    (trace, ask) => new Promise((resolve, reject) => asked.push({ trace, ask, resolve, reject })),
  );
});
afterEach(() => void vi.useRealTimers());

const timeline = (trace_id: number): Timeline => ({ trace_id }) as Timeline;

describe("timelines asked for ahead", () => {
  it("are asked for once and given out once", async () => {
    prepared.begin(3);
    prepared.begin(3);
    const taken = prepared.take(3);
    asked[0].resolve(timeline(3));
    expect(await taken).toEqual({ trace_id: 3 });
    void prepared.take(3);
    expect(asked.map(({ trace }) => trace)).toEqual([3, 3]);
  });

  it("tell their progress to who took them, and end when that one gives up", () => {
    prepared.begin(3);
    const onProgress = vi.fn();
    const aborter = new AbortController();
    void prepared.take(3, { onProgress, signal: aborter.signal });
    asked[0].ask.onProgress?.(5, 10);
    expect(onProgress).toHaveBeenCalledWith(5, 10);
    aborter.abort();
    expect(asked[0].ask.signal?.aborted).toBe(true);
  });

  it("are asked for anew where the first request failed", async () => {
    prepared.begin(3);
    asked[0].reject(new Error("the network is down"));
    await vi.advanceTimersByTimeAsync(0);
    void prepared.take(3);
    expect(asked).toHaveLength(2);
  });

  it("make room for newer ones, and do not stay for ever", () => {
    for (const trace of [1, 2, 3]) prepared.begin(trace);
    expect(asked.map(({ ask }) => ask.signal?.aborted)).toEqual([true, false, false]);
    vi.advanceTimersByTime(60_000);
    expect(asked.map(({ ask }) => ask.signal?.aborted)).toEqual([true, true, true]);
    void prepared.take(3);
    expect(asked).toHaveLength(4);
  });

  it("are waited for until they are there, have failed, or the patience is over", async () => {
    const settled: string[] = [];
    const wait = (name: string, trace: number): void => void prepared.within(trace, 20).then(() => settled.push(name));
    for (const trace of [1, 2]) prepared.begin(trace);
    wait("comes", 1);
    wait("fails", 2);
    wait("nobody asked", 9);
    await vi.advanceTimersByTimeAsync(0);
    expect(settled).toEqual(["nobody asked"]);
    asked[0].resolve(timeline(1));
    asked[1].reject(new Error("the network is down"));
    await vi.advanceTimersByTimeAsync(0);
    expect(settled).toEqual(["nobody asked", "comes", "fails"]);
    prepared.begin(3);
    wait("takes long", 3);
    await vi.advanceTimersByTimeAsync(19);
    expect(settled).not.toContain("takes long");
    await vi.advanceTimersByTimeAsync(1);
    expect(settled).toContain("takes long");
    expect(asked[2].ask.signal?.aborted).toBe(false);
  });

  it("are dropped with the session that they are of", () => {
    prepared.begin(1);
    prepared.clear();
    expect(asked[0].ask.signal?.aborted).toBe(true);
  });
});
