/** The details of a node, put together from the columns of a standalone page (trace/node.py does it for the live one). */
import { StringColumn, typedArray, type TypedArray } from "./columns";
import type {
  Column,
  CriticalPath,
  Neighbourhood,
  NodeDetail,
  NodeDetails,
  NodeRef,
  Output,
  PathStep,
  Timeline,
} from "./messages";

/** As many links of a kind as the server lists. */
const MOST_LINKS = 200;
const LABEL = /^.* = .*?\((.*)\)/s;

type ColumnName = {
  [K in keyof NodeDetails]: NodeDetails[K] extends Column ? K : never;
}[keyof NodeDetails];

/** The columns of a timeline that are those of the nodes, in its order: a page carries them once. */
type OfNodes = "start" | "duration" | "delay" | "name" | "op" | "kind" | "critical";
export type Drawn = Omit<Timeline, OfNodes | "names" | "ops">;

/** A critical path whose steps are columns. */
export interface PathColumns extends Omit<CriticalPath, "steps"> {
  steps: { node: Column; wait_ns: Column; reason: Column; reasons: PathStep["reason"][] };
}

/** `column[at[i]]` for each i. */
function gathered(column: Column, at: TypedArray): Column {
  const from = typedArray(column);
  const to = from.slice(0, 0).constructor as new (length: number) => TypedArray;
  const array = new to(at.length);
  for (let i = 0; i < at.length; i++) array[i] = from[at[i] ?? 0] ?? 0;
  return { dtype: column.dtype, data: new Uint8Array(array.buffer) };
}

export class Details {
  private readonly known = new Map<ColumnName, TypedArray>();
  readonly names: StringColumn;
  readonly ops: StringColumn;
  private readonly labels: StringColumn;
  private byProducer: Map<number, number[]> | undefined;

  constructor(private readonly columns: NodeDetails) {
    this.names = new StringColumn(columns.names);
    this.ops = new StringColumn(columns.ops);
    this.labels = new StringColumn(columns.labels);
  }

  /** A timeline with what is known of its nodes. */
  timeline(drawn: Drawn): Timeline {
    const node = typedArray(drawn.node);
    const { columns } = this;
    const of = (name: OfNodes): Column => gathered(columns[name], node);
    return {
      ...drawn,
      start: of("start"),
      duration: of("duration"),
      delay: of("delay"),
      name: of("name"),
      op: of("op"),
      kind: of("kind"),
      critical: of("critical"),
      names: columns.names,
      ops: columns.ops,
    };
  }

  criticalPath(path: PathColumns): CriticalPath {
    const wait = typedArray(path.steps.wait_ns);
    const reason = typedArray(path.steps.reason);
    const steps = Array.from(typedArray(path.steps.node), (node, i): PathStep => {
      const start_ns = this.number("start", node);
      return {
        ...this.ref(node),
        start_ns,
        end_ns: start_ns + Math.max(this.number("duration", node), 0),
        wait_ns: wait[i] ?? 0,
        reason: path.steps.reasons[reason[i] ?? 0] ?? "start",
      };
    });
    return { ...path, steps };
  }

  /** One node's details; a RangeError for a number that the trace does not have. */
  detail(node: number): NodeDetail {
    this.check(node);
    const start = this.number("start", node);
    const duration = this.number("duration", node);
    const ref = this.ref(node);
    const label = this.label(node);
    const inputs = this.links("input_offsets", "input", node, (edge) => this.number("input_control", edge) === 0);
    const control = this.links("input_offsets", "input", node, (edge) => this.number("input_control", edge) === 1);
    return {
      ...ref,
      label,
      device_title: this.columns.device_titles[this.number("device", node)] ?? "",
      scope: ref.name.includes("/") ? ref.name.slice(0, ref.name.lastIndexOf("/")) : "",
      thread: String(this.number("thread", node)),
      kind: this.number("kind", node),
      start_ns: start,
      end_ns: start + Math.max(duration, 0),
      duration_ns: Math.max(duration, 0),
      op_start_ns: this.unless(this.number("op_start", node), (offset) => start + offset),
      op_end_ns: this.unless(this.number("op_end", node), (offset) => start + duration - offset),
      scheduled_ns: this.unless(this.number("delay", node), (delay) => start - delay),
      delay_ns: this.unless(this.number("delay", node), (delay) => delay),
      share_of_type: this.number("share_of_type", node),
      share_of_step: Math.max(duration, 0) / Math.max(this.columns.duration_ns, 1),
      critical: this.number("critical", node) === 1,
      slack_ns: this.number("slack", node),
      inputs: inputs.length || control.length ? inputs : this.named(label, false),
      consumers: this.consumers(node),
      control_inputs: control,
      outputs: this.outputs(node),
      temporary_bytes: this.number("temporary_bytes", node),
      persistent_bytes: this.number("persistent_bytes", node),
      bytes_moved: this.number("bytes_moved", node),
      source: this.columns.places[this.number("source", node)] ?? "",
      destination: this.columns.places[this.number("destination", node)] ?? "",
      related: this.links("related_offsets", "related", node, () => true),
    };
  }

  /** The nodes at most `depth` edges away, nearest first, and the edges among them (as trace/node.py finds them). */
  neighbourhood(node: number, depth = 2, limit = 200): Neighbourhood {
    this.check(node);
    const place = new Map([[node, 0]]);
    const queue: [number, number][] = [[node, 0]];
    const left = new Set<number>();
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [at, distance] = next;
      if (distance >= depth) continue;
      for (const other of [...this.producers(at), ...this.readers(at)]) {
        if (place.has(other)) continue;
        if (place.size < limit) {
          place.set(other, place.size);
          queue.push([other, distance + 1]);
        } else {
          left.add(other);
        }
      }
    }
    const edges = [...place].flatMap(([consumer, to]) =>
      this.producers(consumer).flatMap((producer) => {
        const from = place.get(producer);
        return from === undefined ? [] : [[from, to]];
      }),
    );
    return { nodes: [...place.keys()].map((at) => this.ref(at)), edges, left_out: left.size };
  }

  private check(node: number): void {
    if (!Number.isInteger(node) || node < 0 || node >= this.columns.nodes) {
      throw new RangeError(`The trace has no node ${node}: its nodes are 0 to ${this.columns.nodes - 1}.`);
    }
  }

  private column(name: ColumnName): TypedArray {
    const known = this.known.get(name);
    if (known) return known;
    const array = typedArray(this.columns[name]);
    this.known.set(name, array);
    return array;
  }

  private number(name: ColumnName, at: number): number {
    return this.column(name)[at] ?? 0;
  }

  private unless(value: number, then: (value: number) => number): number | null {
    return value === -1 ? null : then(value);
  }

  ref(node: number): NodeRef {
    return {
      node,
      name: this.names.at(this.number("name", node)),
      op: this.ops.at(this.number("op", node)),
      device: this.device(this.number("device", node)),
    };
  }

  /** The name of a device; "" for none. */
  device(code: number): string {
    return this.columns.devices[code] ?? "";
  }

  private label(node: number): string {
    const text = this.labels.at(this.number("label", node));
    const { name, op } = this.ref(node);
    return this.number("short", this.number("label", node)) === 1 ? `${name} = ${op}${text}` : text;
  }

  private links(offsets: ColumnName, values: ColumnName, node: number, wanted: (edge: number) => boolean): NodeRef[] {
    const found = new Set<number>();
    const end = this.number(offsets, node + 1);
    for (let edge = this.number(offsets, node); edge < end && found.size < MOST_LINKS; edge++) {
      if (wanted(edge)) found.add(this.number(values, edge));
    }
    return [...found].map((other) => this.ref(other));
  }

  /** What the label names, of a node whose inputs did not run. */
  private named(label: string, control: boolean): NodeRef[] {
    const inputs = LABEL.exec(label)?.[1];
    if (!inputs) return [];
    return inputs
      .split(", ")
      .filter((text) => text.startsWith("^") === control)
      .slice(0, MOST_LINKS)
      .map((text) => ({ node: -1, name: text.replace(/^\^/, "").replace(/:\d{1,9}$/, ""), op: "", device: "" }));
  }

  private consumers(node: number): NodeRef[] {
    return this.readers(node)
      .slice(0, MOST_LINKS)
      .map((other) => this.ref(other));
  }

  private producers(node: number): number[] {
    const low = this.number("input_offsets", node);
    return [...new Set(this.column("input").subarray(low, this.number("input_offsets", node + 1)))];
  }

  /** Nodes that wait for a node: its edges by producer are made once, when they are first asked for. */
  private readers(node: number): number[] {
    this.byProducer ??= this.reversed();
    return this.byProducer.get(node) ?? [];
  }

  private reversed(): Map<number, number[]> {
    const found = new Map<number, Set<number>>();
    for (let consumer = 0; consumer < this.columns.nodes; consumer++) {
      for (const producer of this.producers(consumer)) {
        const readers = found.get(producer) ?? new Set<number>();
        found.set(producer, readers.add(consumer));
      }
    }
    return new Map([...found].map(([producer, readers]) => [producer, [...readers]]));
  }

  private outputs(node: number): Output[] {
    const found: Output[] = [];
    const end = this.number("output_offsets", node + 1);
    for (let at = this.number("output_offsets", node); at < end; at++) found.push(this.output(at));
    return found;
  }

  /** One of all nodes' outputs. */
  output(at: number): Output {
    return {
      slot: this.number("output_slot", at),
      dtype: this.columns.dtypes[this.number("output_dtype", at)] ?? "",
      shape: this.columns.shapes[this.number("output_shape", at)] ?? "",
      bytes: this.number("output_bytes", at),
      allocator: this.columns.allocators[this.number("output_allocator", at)] ?? "",
    };
  }
}
