import { describe, expect, it, vi } from "vitest";
import { effectScope } from "vue";
import type { Ask, Client } from "@/client/client";
import type { Timeline } from "@/client/messages";
import { messageOf } from "../../dev/timeline";
import { useTimelineData, type TimelineData } from "./useTimelineData";

interface Asked {
  ask: Ask;
  resolve: (message: Timeline) => void;
  reject: (error: Error) => void;
}

function load(): { data: TimelineData; asked: Asked[]; ready: ReturnType<typeof vi.fn>; stop: () => void } {
  const asked: Asked[] = [];
  const client = {
    analysis: (_trace: number, _path: string, _parameters: object, ask: Ask) =>
      new Promise<Timeline>((resolve, reject) => asked.push({ ask, resolve, reject })),
  } as unknown as Client;
  const ready = vi.fn();
  const scope = effectScope();
  const data = scope.run(() => useTimelineData(client, 7, ready));
  if (data === undefined) throw new Error("the scope is not active");
  return { data, asked, ready, stop: () => scope.stop() };
}

const message = (): Timeline => messageOf([{ rows: [[{ start: 0, duration: 5 }]] }]);

describe("loading a timeline", () => {
  it("reports its progress, then is ready", async () => {
    const { data, asked, ready } = load();
    data.start();
    asked[0].ask.onProgress?.(300, 1000);
    expect(data.loading.value).toEqual({ status: "loading", loaded: 300, total: 1000 });
    asked[0].resolve(message());
    await vi.waitFor(() => expect(data.loading.value.status).toBe("ready"));
    expect(ready).toHaveBeenCalledOnce();
  });

  it("can be cancelled and started again; an answer that comes too late is ignored", async () => {
    const { data, asked, ready } = load();
    data.start();
    data.cancel();
    expect(asked[0].ask.signal?.aborted).toBe(true);
    asked[0].resolve(message());
    await Promise.resolve();
    expect(data.loading.value.status).toBe("cancelled");
    data.start();
    asked[1].resolve(message());
    await vi.waitFor(() => expect(data.loading.value.status).toBe("ready"));
    expect(ready).toHaveBeenCalledOnce();
  });

  it("says why it failed", async () => {
    const { data, asked } = load();
    data.start();
    asked[0].reject(new Error("The trace's bytes are cut short."));
    await vi.waitFor(() =>
      expect(data.loading.value).toEqual({ status: "failed", message: "The trace's bytes are cut short." }),
    );
  });

  it("stops when the view is closed", () => {
    const { data, asked, stop } = load();
    data.start();
    stop();
    expect(asked[0].ask.signal?.aborted).toBe(true);
  });
});
