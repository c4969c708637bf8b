/** A small made-up timeline, for tests: slices given row by row, names and ops by text. */
import type { Column, Lane, Strings, Timeline } from "@/client/messages";
import { Kind, TimelineModel } from "@/timeline/model";

export interface TestSlice {
  start: number;
  duration: number;
  name?: string;
  op?: string;
  kind?: number;
  critical?: boolean;
}

export interface TestLane {
  rows: TestSlice[][];
  title?: string;
  kind?: Lane["kind"];
  device?: string;
  collapsed?: boolean;
}

function column(dtype: Column["dtype"], values: ArrayBufferView): Column {
  return { dtype, data: new Uint8Array(values.buffer, values.byteOffset, values.byteLength) };
}

function strings(list: readonly string[]): Strings {
  const encoded = list.map((text) => new TextEncoder().encode(text));
  const offsets = new Uint32Array(list.length + 1);
  encoded.forEach((bytes, i) => (offsets[i + 1] = offsets[i] + bytes.length));
  const data = new Uint8Array(offsets[list.length]);
  encoded.forEach((bytes, i) => data.set(bytes, offsets[i]));
  return { data, offsets: column("u4", offsets) };
}

export function messageOf(lanes: readonly TestLane[]): Timeline {
  const rows = lanes.flatMap((lane) => lane.rows);
  const slices = rows.flat();
  const names = [...new Set(slices.map((s) => s.name ?? ""))];
  const ops = [...new Set(slices.map((s) => s.op ?? ""))];
  const offsets = new Uint32Array(rows.length + 1);
  rows.forEach((row, i) => (offsets[i + 1] = offsets[i] + row.length));
  let row = 0;
  return {
    trace_id: 1,
    title: "test",
    nodes: slices.length,
    origin_ns: "1700000000000000000",
    duration_ns: Math.max(0, ...slices.map((s) => s.start + s.duration)),
    lanes: lanes.map((lane, id) => {
      const first_row = row;
      row += lane.rows.length;
      const count = lane.rows.flat().length;
      const { title = `lane ${id}`, kind = "compute", device = `/device:CPU:${id}`, collapsed = false } = lane;
      return {
        id,
        device,
        title,
        kind,
        group: "",
        first_row,
        rows: lane.rows.length,
        slices: count,
        busy_ns: 0,
        collapsed,
      };
    }),
    row_offsets: column("u4", offsets),
    start: column(
      "f8",
      Float64Array.from(slices, (s) => s.start),
    ),
    duration: column(
      "u4",
      Uint32Array.from(slices, (s) => s.duration),
    ),
    delay: column(
      "f4",
      Float32Array.from(slices, () => -1),
    ),
    node: column(
      "u4",
      Uint32Array.from(slices, (_, i) => i),
    ),
    name: column(
      "u4",
      Uint32Array.from(slices, (s) => names.indexOf(s.name ?? "")),
    ),
    op: column(
      "u2",
      Uint16Array.from(slices, (s) => ops.indexOf(s.op ?? "")),
    ),
    kind: column(
      "u1",
      Uint8Array.from(slices, (s) => s.kind ?? Kind.COMPUTE),
    ),
    critical: column(
      "u1",
      Uint8Array.from(slices, (s) => Number(s.critical ?? false)),
    ),
    names: strings(names),
    ops: strings(ops),
    has_cost_graph: false,
    findings: [],
  };
}

export function modelOf(...lanes: TestLane[]): TimelineModel {
  return new TimelineModel(messageOf(lanes));
}

/** A deterministic stream of numbers in 0..1 (mulberry32). */
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A row of n slices without overlaps. */
export function randomRow(n: number, seed: number): TestSlice[] {
  const next = random(seed);
  let time = 0;
  return Array.from({ length: n }, () => {
    const start = time + Math.floor(next() * 5);
    const duration = Math.floor(next() * 20) * (next() < 0.02 ? 50 : 1);
    time = start + duration;
    return { start, duration, name: `n${Math.floor(next() * 7)}`, op: `Op${Math.floor(next() * 5)}` };
  });
}
