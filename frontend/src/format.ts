/** Numbers, times and sizes as text: a fitting unit, three significant digits, a thin space before the unit. */

const GAP = "\u202f"; // narrow no-break space
export const NONE = "–";

const integers = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "long" });

/** Three significant digits, at most three decimals, thousands separated: 0.123, 1.23, 12.3, 123, 1,234. */
export function significant(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 99.95) return integers.format(value);
  const digits = size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  return value.toFixed(digits);
}

/** Format a value in the largest unit that is not larger than the value. `units`: [size, name], the largest first. */
function withUnit(value: number, units: readonly (readonly [number, string])[]): string {
  const size = Math.abs(value);
  const unit = units.find(([unitSize]) => size >= unitSize * 0.9995) ?? units[units.length - 1];
  return unit ? `${significant(value / unit[0])}${GAP}${unit[1]}` : significant(value);
}

const NANOSECONDS = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
] as const;

/** A duration given in nanoseconds: `830 ns`, `12.3 µs`, `1.23 ms`, `4.56 s`, `3 min 20 s`, `2 h 05 min`. */
export function formatNs(ns: number | null | undefined): string {
  if (ns === null || ns === undefined || !Number.isFinite(ns)) return NONE;
  if (Math.abs(ns) >= 119.5e9) return formatLong(ns / 1e9);
  if (ns === 0) return `0${GAP}s`;
  if (Number.isInteger(ns) && Math.abs(ns) < 1000) return `${ns}${GAP}ns`;
  return withUnit(ns, NANOSECONDS);
}

function formatLong(seconds: number): string {
  const sign = seconds < 0 ? "-" : "";
  const total = Math.round(Math.abs(seconds));
  const hours = Math.floor(total / 3600);
  const minutes = Math.floor((total % 3600) / 60);
  const twoDigits = (n: number): string => String(n).padStart(2, "0");
  if (hours >= 48) return `${sign}${Math.floor(hours / 24)}${GAP}d ${hours % 24}${GAP}h`;
  if (hours > 0) return `${sign}${hours}${GAP}h ${twoDigits(minutes)}${GAP}min`;
  return `${sign}${minutes}${GAP}min ${twoDigits(total % 60)}${GAP}s`;
}

/** A duration given in seconds. */
export function formatSeconds(seconds: number | null | undefined): string {
  return formatNs(seconds === null || seconds === undefined ? null : seconds * 1e9);
}

/** Decimal units, as in the verdict. */
const BYTES = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "kB"],
  [1, "B"],
] as const;

/** `512 B`, `1.54 kB`, `12.3 MB`. */
export function formatBytes(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined || !Number.isFinite(bytes)) return NONE;
  return Math.abs(bytes) < 999.5 ? `${integers.format(bytes)}${GAP}B` : withUnit(bytes, BYTES);
}

const FLOPS = [
  [1e15, "PFLOP"],
  [1e12, "TFLOP"],
  [1e9, "GFLOP"],
  [1e6, "MFLOP"],
  [1e3, "kFLOP"],
  [1, "FLOP"],
] as const;

/** Floating-point operations: `512 FLOP`, `12.3 GFLOP`. */
export function formatFlops(flops: number | null | undefined): string {
  if (flops === null || flops === undefined || !Number.isFinite(flops)) return NONE;
  return Math.abs(flops) < 999.5 ? `${integers.format(flops)}${GAP}FLOP` : withUnit(flops, FLOPS);
}

/** `12,345`. */
export function formatCount(count: number | null | undefined): string {
  return count === null || count === undefined ? NONE : integers.format(count);
}

/** A rate: `0.520/s`, `12.3/s`, `1,234/s`. */
export function formatRate(rate: number | null | undefined): string {
  return rate === null || rate === undefined ? NONE : `${significant(rate)}/s`;
}

/** A share, 0..1: `0.4%`, `12%`. */
export function formatShare(share: number | null | undefined): string {
  if (share === null || share === undefined || !Number.isFinite(share)) return NONE;
  const percent = share * 100;
  if (percent > 0 && percent < 0.1) return "<0.1%";
  return `${Math.abs(percent) < 9.95 && percent !== 0 ? percent.toFixed(1) : percent.toFixed(0)}%`;
}

/** A time as a multiple of the usual one: `1.82×`. */
export function formatFactor(value: number | null, usual: number | null): string {
  if (value === null || usual === null || usual <= 0) return NONE;
  return `${significant(value / usual)}×`;
}

/** How a time has changed: `17% slower`; from a factor of 2 on, `12.8× slower`. */
export function formatChange(before: number, after: number): string {
  const word = after > before ? "slower" : "quicker";
  const factor = Math.max(before, after) / Math.min(before, after);
  return `${factor >= 2 ? formatFactor(factor, 1) : formatShare(Math.abs(after / before - 1))} ${word}`;
}

/** Epoch seconds as a time of day, with the date if it is not today. */
export function formatTime(at: number | null | undefined, now = new Date()): string {
  if (!at) return NONE; // 0: the file has no time
  const date = new Date(at * 1000);
  const time = clock.format(date);
  return date.toDateString() === now.toDateString() ? time : `${day.format(date)}, ${time}`;
}

/** Epoch seconds in full, with the time zone: for tooltips. */
export function formatFullTime(at: number | null | undefined): string {
  return at ? full.format(new Date(at * 1000)) : "";
}

/** The kinds of parts in a device's name: UNITS say what the device is, PLACES say in which process it is. */
const UNITS = ["device", "host", "gpu", "cpu"];
const PLACES = ["job", "replica", "task"];

/**
 * Return a device's short name, which is also its lane's: `ps/0 CPU:0`, `GPU:1 stream 14 (MemcpyH2D)`. Other names are unchanged.
 * In a trace of several processes, it also names the process that recorded the device: `rank 1 GPU:0`, `ps/0 CPU:0 for worker/1`.
 */
export function shortDevice(name: string): string {
  const start = name.startsWith("/") ? 0 : name.indexOf(" /") + 1;
  const recorder = name.slice(0, Math.max(0, start - 1));
  const [before, ...parts] = name
    .slice(start)
    .split("/")
    .map((part) => part.split(":"));
  const kinds = parts.map(([kind = ""]) => kind);
  const isPlaced = PLACES.every((place, i) => kinds[i] === place);
  if (before?.join(":") !== "" || !(isPlaced || UNITS.includes(kinds[0] ?? ""))) return name;
  const [job, , task] = isPlaced ? parts.map(([, value = ""]) => value) : [];
  const owner = job === undefined || job === "localhost" ? "" : `${job}/${task}`;
  const words = parts.slice(isPlaced ? PLACES.length : 0).map(partInWords);
  const other = recorder !== "" && owner !== "" && owner !== recorder;
  return [owner || recorder, ...(words.includes("tf.data") ? ["tf.data"] : words), other ? `for ${recorder}` : ""]
    .filter(Boolean)
    .join(" ");
}

/** `device:GPU:0` -> `GPU:0`, `stream:63<MemcpyH2D>` -> `stream 63 (MemcpyH2D)`. */
function partInWords([kind = "", ...rest]: readonly string[]): string {
  if (kind === "gpu" || kind === "cpu") return [kind, ...rest].join(":").toUpperCase();
  if (UNITS.includes(kind)) return rest.join(":");
  if (kind !== "stream") return [kind, ...rest].join(":");
  const [stream, detail] = rest.join(":").split("<");
  return stream === "all" ? "all streams" : `stream ${stream}${detail ? ` (${detail.replace(">", "")})` : ""}`;
}

/** `1 step`, `2 steps`, `1 process`, `3 processes`. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${formatCount(count)} ${count === 1 ? one : many}`;
}
