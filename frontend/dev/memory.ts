/** A process whose memory grows, made up. */
import type { MemoryGrowth, ProcessMemory } from "../src/client/messages";

const BEGAN = 1_790_000_000;
const MB = 1_000_000;

export function fakeGrowth(change: Partial<MemoryGrowth> = {}): MemoryGrowth {
  return {
    since: BEGAN + 60,
    until: BEGAN + 180,
    start_bytes: 500 * MB,
    end_bytes: 560 * MB,
    bytes_rate: 0.5 * MB,
    is_growing: true,
    kind: "tensors",
    text: "Memory grows by 30 MB/min: 60 MB in 2 min. With it grow tensors (EagerTensor): 469 more, 22.5 MB/min, made at train.py:73.",
    advice: "Tensors are kept: keep their values, float(loss), or let go of them.",
    doubts: ["To find it, all Python objects were listed 3 times: for 0.3 s in all no other thread could run Python."],
    things: [
      { kind: "tensors", name: "EagerTensor", grown: 469, rate: 8, bytes_rate: 0.4 * MB, place: "train.py:73" },
      { kind: "objects", name: "Batch", grown: 12, rate: 0.2, bytes_rate: null, place: "" },
    ],
    ...change,
  };
}

export function fakeMemory(change: Partial<ProcessMemory> = {}): ProcessMemory {
  const at = Array.from({ length: 19 }, (_, i) => BEGAN + 10 * i);
  const low = at.map((moment) => 480 * MB + 0.4 * MB * (moment - BEGAN));
  return {
    at,
    low,
    high: low.map((bytes) => bytes + 2 * MB),
    growths: [fakeGrowth()],
    growth_rate: 0.5 * MB,
    text: "",
    ...change,
  };
}
