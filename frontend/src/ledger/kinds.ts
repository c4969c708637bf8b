/** The parts of the ledger: the colour of each, which stands out on light and on dark. */
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

/** Tenths of a percent, which add up to all of it: `30.0%`. */
export function formatPermille(permille: number): string {
  return `${(permille / 10).toFixed(1)}%`;
}
