/** Short messages about what was just done, or why it failed. */
import { readonly, shallowRef, type DeepReadonly, type ShallowRef } from "vue";

export interface Toast {
  readonly id: number;
  readonly kind: "done" | "error";
  readonly text: string;
}

const STAYS_MS = { done: 4_000, error: 12_000 };
const toasts = shallowRef<readonly Toast[]>([]);
let lastId = 0;

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((t) => t.id !== id);
}

export function toast(text: string, kind: Toast["kind"] = "done"): void {
  const id = ++lastId;
  toasts.value = [...toasts.value.filter((t) => t.text !== text), { id, kind, text }].slice(-4);
  setTimeout(() => dismiss(id), STAYS_MS[kind]);
}

/** Show a failure, unless it is only a cancelled request. */
export function toastError(error: unknown): void {
  if (error instanceof DOMException && error.name === "AbortError") return;
  toast(error instanceof Error ? error.message : String(error), "error");
}

/** Run a button's action, and show `done` after it; a failure becomes a toast. Returns whether it succeeded. */
export async function attempt(action: () => Promise<unknown>, done = ""): Promise<boolean> {
  try {
    await action();
    if (done) toast(done);
    return true;
  } catch (error) {
    toastError(error);
    return false;
  }
}

export function useToasts(): DeepReadonly<ShallowRef<readonly Toast[]>> {
  return readonly(toasts);
}

/** Copy text to the clipboard, and show a toast about success or failure. */
export async function copyText(text: string, what: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(`${what} copied`);
  } catch {
    // The clipboard's API needs a secure context, which plain http on another host is not.
    if (copyBySelection(text)) toast(`${what} copied`);
    else toast("The browser allows no copying here: select the text and press Ctrl+C", "error");
  }
}

function copyBySelection(text: string): boolean {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "screen-reader-only";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}
