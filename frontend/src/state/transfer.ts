/** Saving the session to a file, and loading a file into it: progress, cancelling and the result. */
import { shallowRef, type ShallowRef } from "vue";
import type { Client, Progress } from "@/client/client";
import { formatBytes, plural } from "@/format";
import { attempt, toast } from "./toasts";

export interface Transfer {
  readonly what: "Saving" | "Loading";
  readonly loaded: number;
  readonly total: number | null;
}

export interface Transfers {
  readonly now: Readonly<ShallowRef<Transfer | null>>;
  /** `save` and `load` return whether they succeeded. */
  save(): Promise<boolean>;
  load(file: File): Promise<boolean>;
  cancel(): void;
}

/** Let the browser save a blob as a file. */
function saveFile(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

export function useTransfer(client: Client): Transfers {
  const now = shallowRef<Transfer | null>(null);
  let abort: AbortController | null = null;

  async function run(
    what: Transfer["what"],
    action: (options: { signal: AbortSignal; onProgress: Progress }) => Promise<void>,
  ): Promise<boolean> {
    abort?.abort();
    const mine = new AbortController();
    abort = mine;
    now.value = { what, loaded: 0, total: null };
    const onProgress: Progress = (loaded, total) => {
      if (abort === mine) now.value = { what, loaded, total };
    };
    const done = await attempt(() => action({ signal: mine.signal, onProgress }));
    if (abort === mine) now.value = null;
    return done;
  }

  return {
    now,
    save: () =>
      run("Saving", async (options) => {
        const { blob, name } = await client.saveSession(options);
        saveFile(blob, name);
        toast(`${name} saved (${formatBytes(blob.size)})`);
      }),
    load: (file) =>
      run("Loading", async (options) => {
        const loaded = await client.loadSession(file, options);
        toast(`${plural(loaded.runs, "run")} and ${plural(loaded.traces, "trace")} loaded from ${file.name}`);
        if (loaded.cut) toast(`${file.name}: ${loaded.cut}`, "error");
        if (loaded.damage) toast(`${file.name}: ${loaded.damage}`, "error");
      }),
    cancel: () => {
      abort?.abort();
      now.value = null;
    },
  };
}
