/** Times, sizes and shares as people read them. */

const TIME_UNITS: readonly (readonly [string, number])[] = [
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
  ["ns", 1],
];

/** 1234567 -> "1.23 ms": three significant digits, in the largest unit that leaves at least 1. */
export function formatTime(ns: number): string {
  if (!Number.isFinite(ns)) return "–";
  if (ns === 0) return "0";
  const magnitude = Math.abs(ns);
  for (const [unit, size] of TIME_UNITS) {
    if (magnitude >= size * 0.9995 || unit === "ns") return `${significant(ns / size)} ${unit}`;
  }
  return "0";
}

function significant(value: number): string {
  const magnitude = Math.abs(value);
  if (magnitude >= 99.95) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(magnitude >= 9.995 ? 1 : 2).replace(/\.?0+$/, "");
}

const BYTE_UNITS = ["B", "KB", "MB", "GB", "TB"] as const;

/** 1536 -> "1.5 KB" (1,024 to the unit, as TensorFlow counts). */
export function formatBytes(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1023.5 && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 ? Math.round(value) : significant(value)} ${BYTE_UNITS[unit]}`;
}

export function formatShare(share: number): string {
  const percent = share * 100;
  if (percent > 0 && percent < 0.1) return "< 0.1 %";
  return `${percent.toFixed(percent < 10 ? 1 : 0)} %`;
}

export function formatCount(count: number): string {
  return count.toLocaleString("en-US");
}
