/**
 * Timelines asked for before their view is there: of a trace that a pointer rests on, whose view is still loading, or that was
 * asked for on this page and has just come. Each is given out once.
 */
import type { Ask, Progress } from "./client";
import type { Timeline } from "./messages";

/** So many at once: the pointer passes over others on its way. */
const MOST = 2;
/** One that nobody wanted after all takes memory for nothing. */
const KEPT_MS = 30_000;

interface Flight {
  readonly answer: Promise<Timeline>;
  readonly aborter: AbortController;
  readonly timer: ReturnType<typeof setTimeout>;
  /** Who waits for it, once somebody does. */
  onProgress: Progress | undefined;
}

export class Prepared {
  private readonly flights = new Map<number, Flight>();

  constructor(private readonly ask: (trace: number, ask: Ask) => Promise<Timeline>) {}

  begin(trace: number): void {
    if (this.flights.has(trace)) return;
    const [oldest] = this.flights.keys();
    if (this.flights.size >= MOST) this.drop(oldest);
    const aborter = new AbortController();
    const onProgress: Progress = (loaded, total) => flight.onProgress?.(loaded, total);
    const flight: Flight = {
      answer: this.ask(trace, { signal: aborter.signal, onProgress }),
      aborter,
      timer: setTimeout(() => this.drop(trace), KEPT_MS),
      onProgress: undefined,
    };
    this.flights.set(trace, flight);
    // A failure is told by the view, which asks anew.
    flight.answer.catch(() => this.flights.get(trace) === flight && this.drop(trace));
  }

  /** Settles when the answer is there, or in `patience` milliseconds; at once if none is on its way. */
  async within(trace: number, patience: number): Promise<void> {
    const flight = this.flights.get(trace);
    if (flight === undefined) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const over = new Promise<void>((done) => (timer = setTimeout(done, patience)));
    await Promise.race([flight.answer.catch(() => undefined), over]);
    clearTimeout(timer);
  }

  /** What was begun, or a new request. */
  take(trace: number, ask: Ask = {}): Promise<Timeline> {
    const flight = this.flights.get(trace);
    if (flight === undefined) return this.ask(trace, ask);
    clearTimeout(flight.timer);
    this.flights.delete(trace);
    flight.onProgress = ask.onProgress;
    ask.signal?.addEventListener("abort", () => flight.aborter.abort());
    return flight.answer;
  }

  clear(): void {
    for (const trace of [...this.flights.keys()]) this.drop(trace);
  }

  private drop(trace: number): void {
    const flight = this.flights.get(trace);
    this.flights.delete(trace);
    clearTimeout(flight?.timer);
    flight?.aborter.abort();
  }
}
