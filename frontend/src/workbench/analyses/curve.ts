/** The memory curve: a step function drawn in a box of 1000 x 200, and the tensors that were alive at a time. */
import type { MemoryCurve, Tensor } from "@/client/messages";

export const WIDTH = 1000;
export const HEIGHT = 200;

/** Return the SVG path of a step function, whose value stays until the next point; "" for an empty curve. */
export function stepPath(curve: MemoryCurve, endNs: number, maxBytes: number): string {
  if (curve.time_ns.length === 0 || endNs <= 0 || maxBytes <= 0) return "";
  const x = (ns: number): string => ((ns / endNs) * WIDTH).toFixed(2);
  const y = (bytes: number): string => (HEIGHT - (bytes / maxBytes) * HEIGHT).toFixed(2);
  const parts: string[] = [];
  curve.time_ns.forEach((ns, i) => {
    const level = y(curve.bytes[i] ?? 0);
    parts.push(i === 0 ? `M${x(ns)},${level}` : `H${x(ns)}V${level}`);
  });
  parts.push(`H${WIDTH}`);
  return parts.join("");
}

/** Return the bytes at a time: those of the last point at or before it; 0 before the first. */
export function bytesAt(curve: MemoryCurve, ns: number): number {
  let low = 0;
  let high = curve.time_ns.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((curve.time_ns[middle] ?? 0) <= ns) low = middle + 1;
    else high = middle;
  }
  return low === 0 ? 0 : (curve.bytes[low - 1] ?? 0);
}

/** Return the tensors that were alive at a time, the largest first. */
export function aliveAt(tensors: readonly Tensor[], ns: number): Tensor[] {
  return tensors.filter((t) => t.alloc_ns <= ns && ns < t.free_ns).sort((a, b) => b.bytes - a.bytes);
}
