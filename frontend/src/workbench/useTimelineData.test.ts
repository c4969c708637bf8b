import { describe, expect, it, vi } from "vitest";
import { effectScope } from "vue";
import type { Client, RequestOptions } from "@/client/client";
import type { Timeline } from "@/client/messages";
import { messageOf } from "../../dev/timeline";
import { useTimelineData, type TimelineData } from "./useTimelineData";

interface PendingRequest {
  options: RequestOptions;
  resolve: (message: Timeline) => void;
  reject: (error: Error) => void;
}

function load(): { data: TimelineData; requests: PendingRequest[]; ready: ReturnType<typeof vi.fn>; stop: () => void } {
  const requests: PendingRequest[] = [];
  const client = {
    analysis: (_trace: number, _path: string, _parameters: object, options: RequestOptions) =>
      new Promise<Timeline>((resolve, reject) => requests.push({ options, resolve, reject })),
  } as unknown as Client;
  const ready = vi.fn();
  const scope = effectScope();
  const data = scope.run(() => useTimelineData(client, 7, ready));
  if (data === undefined) throw new Error("the scope is not active");
  return { data, requests, ready, stop: () => scope.stop() };
}

const message = (): Timeline => messageOf([{ rows: [[{ start: 0, duration: 5 }]] }]);

describe("loading a timeline", () => {
  it("reports its progress, then is ready", async () => {
    const { data, requests, ready } = load();
    data.start();
    requests[0].options.onProgress?.(300, 1000);
    expect(data.loading.value).toEqual({ status: "loading", loaded: 300, total: 1000 });
    requests[0].resolve(message());
    await vi.waitFor(() => expect(data.loading.value.status).toBe("ready"));
    expect(ready).toHaveBeenCalledOnce();
  });

  it("can be cancelled and started again; an answer that comes too late is ignored", async () => {
    const { data, requests, ready } = load();
    data.start();
    data.cancel();
    expect(requests[0].options.signal?.aborted).toBe(true);
    requests[0].resolve(message());
    await Promise.resolve();
    expect(data.loading.value.status).toBe("cancelled");
    data.start();
    requests[1].resolve(message());
    await vi.waitFor(() => expect(data.loading.value.status).toBe("ready"));
    expect(ready).toHaveBeenCalledOnce();
  });

  it("says why it failed", async () => {
    const { data, requests } = load();
    data.start();
    requests[0].reject(new Error("The trace's bytes are cut short."));
    await vi.waitFor(() =>
      expect(data.loading.value).toEqual({ status: "failed", message: "The trace's bytes are cut short." }),
    );
  });

  it("stops when the view is closed", () => {
    const { data, requests, stop } = load();
    data.start();
    stop();
    expect(requests[0].options.signal?.aborted).toBe(true);
  });
});
