/** The traces that were picked to be compared: the newest two picks. */
import { readonly, shallowRef, type DeepReadonly, type ShallowRef } from "vue";

const picked = shallowRef<readonly number[]>([]);

export function pick(trace: number, on: boolean): void {
  const others = picked.value.filter((id) => id !== trace);
  picked.value = on ? [...others, trace].slice(-2) : others;
}

export function unpickAll(): void {
  picked.value = [];
}

export function usePicked(): DeepReadonly<ShallowRef<readonly number[]>> {
  return readonly(picked);
}
