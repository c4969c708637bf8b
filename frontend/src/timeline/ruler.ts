/** The ruler: ticks at round numbers, all in one unit, with as many decimals as the step between two of them needs. */

export interface Tick {
  x: number;
  label: string;
  major: boolean;
}

const UNITS: readonly (readonly [string, number])[] = [
  ["s", 1e9],
  ["ms", 1e6],
  ["µs", 1e3],
  ["ns", 1],
];

/** Return the smallest of 1, 2, 5 times a power of ten that is at least `least`. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  for (const factor of [1, 2, 5]) if (factor * power >= least * 0.999999) return factor * power;
  return 10 * power;
}

/** Return the largest unit in which a step between ticks needs at most three decimals and the last time is at least 1. */
function unitFor(step: number, last: number): readonly [string, number] {
  const candidates = UNITS.filter(([, size]) => step >= size * 0.001 && last >= size);
  return candidates[0] ?? ["ns", 1];
}

function decimals(step: number, size: number): number {
  return Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
}

/** Return the ticks of a view from t0 (ns) on, with nsPerPx ns a pixel. Labels are at least `spacing` pixels apart. */
export function ticks(t0: number, nsPerPx: number, width: number, spacing = 96): Tick[] {
  const step = roundStep(Math.max(1e-3, nsPerPx * spacing));
  const minor = step / 5;
  const last = t0 + nsPerPx * width;
  const [unit, size] = unitFor(step, Math.max(Math.abs(t0), Math.abs(last)));
  const digits = decimals(step, size);
  const ticks: Tick[] = [];
  for (let k = Math.ceil(t0 / minor); k * minor <= last; k++) {
    const major = k % 5 === 0;
    const time = k * minor;
    ticks.push({ x: (time - t0) / nsPerPx, label: major ? tickLabel(time, size, digits, unit) : "", major });
  }
  return ticks;
}

function tickLabel(time: number, size: number, digits: number, unit: string): string {
  return time === 0 ? "0" : `${(time / size).toFixed(digits)} ${unit}`;
}
