/** Zooms and pans the timeline while keys (W, S, A, D or arrows) are held. */

/** The speed of each key while it is held: zooming in e-folds a second, panning in view widths a second. */
const KEY_SPEEDS: Record<string, { zoom: number; pan: number }> = {
  w: { zoom: -2.5, pan: 0 },
  s: { zoom: 2.5, pan: 0 },
  a: { zoom: 0, pan: -1.1 },
  d: { zoom: 0, pan: 1.1 },
  ArrowLeft: { zoom: 0, pan: -1.1 },
  ArrowRight: { zoom: 0, pan: 1.1 },
};

/** Moves the view smoothly while keys are held; even a short press moves it visibly. */
export class HeldKeys {
  private readonly held = new Set<string>();
  private frame = 0;
  private lastStepAt = 0;

  constructor(private readonly apply: (zoom: number, pan: number) => void) {}

  /** Handle a pressed key. Returns whether the key moves the view. */
  down(key: string): boolean {
    const name = key.length === 1 ? key.toLowerCase() : key;
    if (!(name in KEY_SPEEDS)) return false;
    if (!this.held.has(name)) {
      this.held.add(name);
      this.apply(KEY_SPEEDS[name].zoom * 0.05, KEY_SPEEDS[name].pan * 0.05);
    }
    if (this.frame === 0) {
      this.lastStepAt = performance.now();
      this.frame = requestAnimationFrame((now) => this.step(now));
    }
    return true;
  }

  up(key: string): void {
    this.held.delete(key.length === 1 ? key.toLowerCase() : key);
  }

  release(): void {
    this.held.clear();
    cancelAnimationFrame(this.frame);
    this.frame = 0;
  }

  private step(now: number): void {
    if (this.held.size === 0) {
      this.frame = 0;
      return;
    }
    const seconds = Math.min(0.05, Math.max(0, now - this.lastStepAt) / 1000);
    this.lastStepAt = now;
    for (const name of this.held) this.apply(KEY_SPEEDS[name].zoom * seconds, KEY_SPEEDS[name].pan * seconds);
    this.frame = requestAnimationFrame((next) => this.step(next));
  }
}
