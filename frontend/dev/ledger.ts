/** A made-up ledger, for developing the page and for its tests. Not shipped. */
import type { Ledger, LedgerItem, LedgerKind, LedgerPart } from "@/client/messages";

function item(name: string, duration_s: number, run_id: number | null = null): LedgerItem {
  return { name, duration_s, times: 10, run_id };
}

function part(kind: LedgerKind, name: string, duration_s: number, items: LedgerItem[] = [], text = ""): LedgerPart {
  return { kind, name, duration_s, permille: duration_s * 10, items, text };
}

export function fakeLedger(change: Partial<Ledger> = {}): Ledger {
  return {
    started_at: 1_790_000_000,
    until: 1_790_000_100,
    duration_s: 100,
    parts: [
      part("start", "Start, until the first step", 8, [], "The recording began 2 s after the process did."),
      part("input", "Waiting for input", 30, [item("the next element of a dataset", 30)]),
      part("steps", "Steps", 55.5, [item("train_op", 50.5, 1), item("init", 5, 2)]),
      part(
        "python",
        "Between steps",
        6.5,
        [item("load_batch (train.py:88)", 4, 1)],
        "The lines are those of 99 samples.",
      ),
    ],
    largest: "input",
    text: "Waiting for input: 30 s, 30% of the wall time.",
    advice: "Add prefetch(tf.data.AUTOTUNE).",
    doubts: [],
    ...change,
  };
}
