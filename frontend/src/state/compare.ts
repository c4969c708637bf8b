/** The ids of the traces that the user picked to compare: the newest two picks. */
import { readonly, shallowRef, type DeepReadonly, type ShallowRef } from "vue";

const picked = shallowRef<readonly number[]>([]);

export function pick(trace: number, on: boolean): void {
  const rest = picked.value.filter((id) => id !== trace);
  picked.value = on ? [...rest, trace].slice(-2) : rest;
}

export function unpickAll(): void {
  picked.value = [];
}

export function usePicked(): DeepReadonly<ShallowRef<readonly number[]>> {
  return readonly(picked);
}
