/** The colours and names of the ledger's parts. The colours are visible on light and on dark backgrounds. */
import type { LedgerKind } from "@/client/messages";

export const COLOURS: Record<LedgerKind, string> = {
  start: "#8b6fd8",
  building: "#c2569b",
  input: "#c2564a",
  steps: "#4f7fd9",
  slow: "#b3a24a",
  python: "#d08a2e",
  evaluation: "#2f9e8f",
  checkpoints: "#6c9a3a",
  suspended: "#4b5362",
  tracer: "#3f9bc4",
  end: "#7d8797",
  unknown: "#a9b0bd",
};

/** The name of each part, in the order of tftracer/ledger/parts_of_wall_time.py. */
export const KINDS: Record<LedgerKind, string> = {
  start: "Start, until the first step",
  building: "Building and tracing functions",
  input: "Waiting for input",
  steps: "Steps",
  slow: "Slow steps, beyond the usual",
  python: "Between steps",
  evaluation: "Evaluation and prediction",
  checkpoints: "Checkpoints and summaries",
  suspended: "Stopped or asleep",
  tracer: "tftracer",
  end: "After the last step",
  unknown: "Not known",
};

/** Return a share with one decimal: `30.0%`. A time that is more than 0 but rounds to `0.0%` is `<0.1%`. */
export function formatPermille(permille: number, seconds: number): string {
  if (permille === 0 && seconds > 0) return "<0.1%";
  return `${(permille / 10).toFixed(1)}%`;
}
