/** The nodes of a standalone page: rows of the columns that tftracer/export/node_table.py computed. */
import { StringColumn, typedArray, type TypedArray } from "./columns";
import type { Links, Neighbourhood, NodeDetail, NodeRef, NodeTable, Output, Records } from "./messages";

/** Stands for null in a column of numbers. */
const NULL = -(2 ** 31);

type Row = Record<string, number | string | boolean | null>;

/** Reads columns as rows. */
class Table {
  private readonly fields: [string, (row: number) => Row[string]][] = [];

  constructor({ numbers, flags, texts }: Records) {
    for (const [name, column] of Object.entries(numbers)) {
      const array = typedArray(column);
      this.fields.push([name, (row) => (array[row] === NULL || Number.isNaN(array[row]) ? null : array[row])]);
    }
    for (const [name, column] of Object.entries(flags)) {
      const array = typedArray(column);
      this.fields.push([name, (row) => array[row] === 1]);
    }
    for (const [name, column] of Object.entries(texts)) {
      const code = typedArray(column.code);
      const strings = new StringColumn(column.texts);
      this.fields.push([name, (row) => strings.at(code[row])]);
    }
  }

  row(at: number): Row {
    return Object.fromEntries(this.fields.map(([name, read]) => [name, read(at)]));
  }
}

/** A list of nodes for each row. */
class NodeLists {
  private readonly offsets: TypedArray;
  private readonly values: TypedArray;

  constructor({ offsets, node }: Links) {
    this.offsets = typedArray(offsets);
    this.values = typedArray(node);
  }

  nodesOf(row: number): TypedArray {
    return this.values.subarray(this.offsets[row], this.offsets[row + 1]);
  }
}

export class Nodes {
  private readonly fields: Table;
  private readonly outputs: Table;
  private readonly outputOffsets: TypedArray;
  private readonly links: [string, NodeLists][];
  private readonly notRun: StringColumn;
  private readonly inputs: NodeLists;
  private consumers: Map<number, number[]> | undefined;

  constructor(private readonly table: NodeTable) {
    this.fields = new Table(table.fields);
    this.outputs = new Table(table.outputs);
    this.outputOffsets = typedArray(table.output_offsets);
    this.links = Object.entries(table.links).map(([name, links]) => [name, new NodeLists(links)]);
    this.notRun = new StringColumn(table.not_run);
    this.inputs = new NodeLists({ offsets: table.input_offsets, node: table.input });
  }

  /** Return the details of a node. Throws a RangeError if the trace has no such node. */
  detail(node: number): NodeDetail {
    this.check(node);
    const links = this.links.map(([name, lists]) => [
      name,
      Array.from(lists.nodesOf(node), (other) => this.ref(other)),
    ]);
    const outputs: Output[] = [];
    for (let i = this.outputOffsets[node]; i < this.outputOffsets[node + 1]; i++) {
      outputs.push(this.outputs.row(i) as unknown as Output);
    }
    const notEmbedded = { facts: [], hlo: "" }; // profiles have these; they are too large for a standalone page
    const fields = this.fields.row(node);
    return { node, ...fields, ...Object.fromEntries(links), outputs, ...notEmbedded } as unknown as NodeDetail;
  }

  private ref(node: number): NodeRef {
    if (node < 0) return { node: -1, name: this.notRun.at(-1 - node), op: "", device: "" };
    const { name, op, device } = this.fields.row(node) as unknown as NodeRef;
    return { node, name, op, device };
  }

  /**
   * Return the nodes at most `depth` edges away, nearest first, and the edges among them. Repeats the algorithm of
   * trace/analyses/node_details.py, because there are too many neighbourhoods to store them all in the page.
   */
  neighbourhood(node: number, depth = 2, limit = 200): Neighbourhood {
    this.check(node);
    const places = new Map([[node, 0]]); // node -> its place in the result
    const leftOut = new Set<number>();
    const queue: [number, number][] = [[node, 0]];
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [at, distance] = next;
      if (distance >= depth) continue;
      for (const other of [...this.inputs.nodesOf(at), ...this.consumersOf(at)]) {
        if (places.has(other)) continue;
        if (places.size < limit) {
          places.set(other, places.size);
          queue.push([other, distance + 1]);
        } else leftOut.add(other);
      }
    }
    const edges = [...places].flatMap(([consumer, to]) =>
      [...new Set(this.inputs.nodesOf(consumer))].flatMap((producer) => {
        const from = places.get(producer);
        return from === undefined ? [] : [[from, to]];
      }),
    );
    return { nodes: [...places.keys()].map((at) => this.ref(at)), edges, left_out: leftOut.size };
  }

  private check(node: number): void {
    if (!Number.isInteger(node) || node < 0 || node >= this.table.nodes) {
      throw new RangeError(`The trace has no node ${node}: its nodes are 0 to ${this.table.nodes - 1}.`);
    }
  }

  /** Return the nodes that have a node as an input. The first call builds the map of consumers. */
  private consumersOf(node: number): number[] {
    this.consumers ??= this.byProducer();
    return this.consumers.get(node) ?? [];
  }

  private byProducer(): Map<number, number[]> {
    const consumers = new Map<number, number[]>();
    for (let consumer = 0; consumer < this.table.nodes; consumer++) {
      for (const producer of this.inputs.nodesOf(consumer)) {
        const known = consumers.get(producer);
        if (known === undefined) consumers.set(producer, [consumer]);
        else known.push(consumer);
      }
    }
    return consumers;
  }
}
