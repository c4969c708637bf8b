/** Loads a trace's timeline. Reports how many bytes have been loaded. Loading can be cancelled and tried again. */
import { onScopeDispose, shallowRef, type ShallowRef } from "vue";
import { ClientError, type Client } from "@/client/client";
import { TimelineModel } from "@/timeline/model";

export type Loading =
  /** `loaded`, `total`: bytes; null: unknown. */
  | { readonly status: "loading"; readonly loaded: number; readonly total: number | null }
  | { readonly status: "cancelled" }
  | { readonly status: "failed"; readonly message: string }
  /** There is no trace of that number. */
  | { readonly status: "missing" }
  | { readonly status: "ready"; readonly model: TimelineModel };

export interface TimelineData {
  readonly loading: ShallowRef<Loading>;
  readonly start: () => void;
  readonly cancel: () => void;
}

export function useTimelineData(client: Client, trace: number, onReady: (model: TimelineModel) => void): TimelineData {
  const loading = shallowRef<Loading>({ status: "loading", loaded: 0, total: null });
  let aborter = new AbortController();

  async function run(signal: AbortSignal): Promise<void> {
    loading.value = { status: "loading", loaded: 0, total: null };
    try {
      const message = await client.analysis(
        trace,
        "timeline",
        {},
        {
          signal,
          onProgress: (loaded, total) => (loading.value = { status: "loading", loaded, total }),
        },
      );
      if (signal.aborted) return;
      const model = new TimelineModel(message);
      onReady(model);
      loading.value = { status: "ready", model };
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ClientError && error.status === 404) loading.value = { status: "missing" };
      else loading.value = { status: "failed", message: error instanceof Error ? error.message : String(error) };
    }
  }

  function start(): void {
    aborter.abort();
    aborter = new AbortController();
    void run(aborter.signal);
  }

  function cancel(): void {
    aborter.abort();
    loading.value = { status: "cancelled" };
  }

  onScopeDispose(() => aborter.abort());
  return { loading, start, cancel };
}
