/**
 * A trace's slices as typed arrays, the way the server sent them: sorted by (row, start), no two overlapping on a row.
 * A slice is an index, not an object, and nothing here is reactive.
 */
import { typedArray, type TypedArray } from "@/client/columns";
import type { Column, Finding, Lane, Strings, Timeline } from "@/client/messages";

/** Values of the timeline's `kind` column (NodeKind of tftracer/trace/model.py). */
export const Kind = {
  COMPUTE: 0,
  COMMUNICATION: 1,
  COPY: 2,
  LAUNCH: 3,
  SYNC: 4,
  INPUT: 5,
  CONTROL: 6,
  REPEAT: 7,
  OUTSIDE: 8,
} as const;

export const KIND_NAMES = [
  "compute",
  "communication",
  "copy",
  "launch",
  "sync",
  "input",
  "control",
  "repeat",
  "outside the step",
] as const;

/** Return whether slices of a kind count in sums. Repeats and slices outside the step are drawn, but do not count. */
export const isCounted = (kind: number): boolean => kind < Kind.REPEAT;

function asFloat64(column: Column): Float64Array {
  const values = typedArray(column);
  return values instanceof Float64Array ? values : Float64Array.from(values);
}

function asUint32(column: Column): Uint32Array {
  const values = typedArray(column);
  return values instanceof Uint32Array ? values : Uint32Array.from(values);
}

function asUint8(column: Column): Uint8Array {
  const values = typedArray(column);
  return values instanceof Uint8Array ? values : Uint8Array.from(values);
}

/** Distinct strings in one UTF-8 blob. It is decoded as a whole if it is all ASCII, else string by string. */
export class StringTable {
  readonly length: number;
  private readonly offsets: Uint32Array;
  private readonly data: Uint8Array;
  private ascii: string | null = null;
  private decoded = false;
  private readonly decoder = new TextDecoder();
  private readonly cache = new Map<number, string>();

  constructor(strings: Strings) {
    this.data = strings.data;
    this.offsets = asUint32(strings.offsets);
    this.length = Math.max(0, this.offsets.length - 1);
  }

  get(index: number): string {
    if (index < 0 || index >= this.length) return "";
    if (!this.decoded) this.decodeAll();
    const begin = this.offsets[index];
    const end = this.offsets[index + 1];
    if (this.ascii !== null) return this.ascii.slice(begin, end);
    let text = this.cache.get(index);
    if (text === undefined) {
      text = this.decoder.decode(this.data.subarray(begin, end));
      this.cache.set(index, text);
    }
    return text;
  }

  /** Decode all strings if they are ASCII: if n bytes give n UTF-16 units, the bytes' offsets are also valid in the text. */
  private decodeAll(): void {
    this.decoded = true;
    const text = this.decoder.decode(this.data);
    if (text.length === this.data.length) this.ascii = text;
  }
}

/** One trace, ready to draw. */
export class TimelineModel {
  readonly traceId: number;
  readonly title: string;
  readonly nodes: number;
  readonly originNs: string;
  readonly durationNs: number;
  readonly hasCostGraph: boolean;
  readonly lanes: readonly Lane[];
  readonly findings: readonly Finding[];
  readonly rows: number;
  /** The number of slices. */
  readonly count: number;
  readonly rowOffsets: Uint32Array;
  /** [slices] ns; 0 is the start of the step. */
  readonly start: Float64Array;
  /** [slices] ns. */
  readonly duration: Float64Array | Uint32Array;
  /** [slices] ns from when a slice was scheduled to its start; -1: unknown. */
  readonly delay: TypedArray;
  readonly node: Uint32Array;
  readonly name: Uint32Array;
  readonly op: Uint16Array | Uint32Array;
  readonly kind: Uint8Array;
  readonly critical: Uint8Array;
  readonly names: StringTable;
  readonly ops: StringTable;
  /** [rows] the lane that a row belongs to. */
  readonly laneOfRow: Uint32Array;
  /** [nodes] the slice of each node; -1: none. Null until first used. */
  private slices: Int32Array | null = null;

  constructor(message: Timeline) {
    this.traceId = message.trace_id;
    this.title = message.title;
    this.nodes = message.nodes;
    this.originNs = message.origin_ns;
    this.hasCostGraph = message.has_cost_graph;
    this.lanes = message.lanes;
    this.findings = message.findings;
    this.rowOffsets = asUint32(message.row_offsets);
    this.rows = Math.max(0, this.rowOffsets.length - 1);
    this.start = asFloat64(message.start);
    this.count = this.start.length;
    const duration = typedArray(message.duration);
    this.duration =
      duration instanceof Uint32Array || duration instanceof Float64Array ? duration : Float64Array.from(duration);
    this.delay = typedArray(message.delay);
    this.node = asUint32(message.node);
    this.name = asUint32(message.name);
    const op = typedArray(message.op);
    this.op = op instanceof Uint16Array || op instanceof Uint32Array ? op : Uint32Array.from(op);
    this.kind = asUint8(message.kind);
    this.critical = asUint8(message.critical);
    this.names = new StringTable(message.names);
    this.ops = new StringTable(message.ops);
    this.durationNs = Math.max(1, message.duration_ns);
    this.laneOfRow = new Uint32Array(this.rows);
    this.lanes.forEach((lane, index) => this.laneOfRow.fill(index, lane.first_row, lane.first_row + lane.rows));
  }

  /** How far slices reach before and after the step, in ns: other threads also work outside the step. */
  get reach(): [before: number, after: number] {
    let [first, last] = [0, this.durationNs];
    for (let row = 0; row < this.rows; row++) {
      if (this.rowOffsets[row] === this.rowOffsets[row + 1]) continue;
      first = Math.min(first, this.start[this.rowOffsets[row]]);
      last = Math.max(last, this.end(this.rowOffsets[row + 1] - 1));
    }
    return [-first, last - this.durationNs];
  }

  end(slice: number): number {
    return this.start[slice] + this.duration[slice];
  }

  /** Whether the critical path is marked. The page requests the path when it is first needed, then calls `markCritical`. */
  get hasCriticalPath(): boolean {
    return this.critical.includes(1);
  }

  markCritical(nodes: Iterable<number>): void {
    for (const node of nodes) {
      const slice = this.sliceOf(node);
      if (slice >= 0) this.critical[slice] = 1;
    }
  }

  nameOf(slice: number): string {
    return this.names.get(this.name[slice]);
  }

  opOf(slice: number): string {
    return this.ops.get(this.op[slice]);
  }

  /** Return the slice that draws a node; -1 for a node that is not drawn. */
  sliceOf(node: number): number {
    if (this.slices === null) {
      this.slices = new Int32Array(Math.max(this.nodes, 1)).fill(-1);
      for (let i = 0; i < this.count; i++) this.slices[this.node[i]] = i;
    }
    return this.slices[node] ?? -1;
  }

  /** Return the row of a slice: the last row whose first slice is not after it. */
  rowOf(slice: number): number {
    let low = 0;
    let high = this.rows;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if (this.rowOffsets[middle] <= slice) low = middle;
      else high = middle;
    }
    return low;
  }

  laneOf(slice: number): Lane | undefined {
    return this.lanes[this.laneOfRow[this.rowOf(slice)]];
  }

  /** Return the first slice of a row that ends after t; the row's end if there is none. */
  firstEndingAfter(row: number, t: number): number {
    let low = this.rowOffsets[row];
    let high = this.rowOffsets[row + 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start[middle] + this.duration[middle] > t) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Return the first slice of a row that starts at or after t; the row's end if there is none. */
  firstStartingAt(row: number, t: number): number {
    let low = this.rowOffsets[row];
    let high = this.rowOffsets[row + 1];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.start[middle] >= t) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
