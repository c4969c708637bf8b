/** A tree as a flame graph: which box stands where. No drawing, and no word of what the tree is of. */

/** A node comes after the one that it lies in. */
export interface Tree {
  /** -1: in no other. */
  readonly parent: readonly number[];
  /** Without the nodes in it. */
  readonly own: readonly number[];
}

/** One node in what it lies in. `start` and `size` are on the graph's axis, which has no order: it only adds up. */
export interface Box {
  readonly node: number;
  readonly parent: number;
  readonly depth: number;
  readonly start: number;
  readonly size: number;
  /** Without the nodes in it. */
  readonly own: number;
}

/** Of each node with all in it. */
export function sums(parent: readonly number[], own: readonly number[]): number[] {
  const all = [...own];
  for (let node = all.length - 1; node >= 0; node--) {
    const outer = parent[node]!;
    if (outer >= 0) all[outer]! += all[node]!;
  }
  return all;
}

/** A box before those in it, siblings by size, the largest first. */
export function boxes(tree: Tree): Box[] {
  const size = sums(tree.parent, tree.own);
  const children = new Map<number, number[]>();
  tree.parent.forEach((parent, node) => {
    const siblings = children.get(parent);
    if (siblings) siblings.push(node);
    else children.set(parent, [node]);
  });
  const laidOut: Box[] = [];
  const waiting: { node: number; depth: number; start: number }[] = [];
  const push = (parent: number, depth: number, from: number): void => {
    const ordered = (children.get(parent) ?? []).sort((a, b) => size[b]! - size[a]!);
    let start = from;
    const row = ordered.map((node) => {
      const box = { node, depth, start };
      start += size[node]!;
      return box;
    });
    waiting.push(...row.reverse());
  };
  push(-1, 0, 0);
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { node, depth, start } = next;
    laidOut.push({ node, parent: tree.parent[node]!, depth, start, size: size[node]!, own: tree.own[node]! });
    push(node, depth + 1, start);
  }
  return laidOut;
}

/** The box itself and all that stands in it, with the box over the whole width; what it lies in is left out. */
export function zoomed(all: readonly Box[], root: number | null): readonly Box[] {
  const top = root === null ? undefined : all.find((box) => box.node === root);
  if (!top) return all;
  const at = all.indexOf(top);
  const inside = all.slice(at + 1);
  const end = inside.findIndex((box) => box.depth <= top.depth);
  return [top, ...(end < 0 ? inside : inside.slice(0, end))].map((box) => ({
    ...box,
    depth: box.depth - top.depth,
    start: box.start - top.start,
  }));
}

/** Boxes beside each other that are too narrow to draw, as one. */
export interface Rest {
  readonly depth: number;
  readonly start: number;
  readonly size: number;
  readonly boxes: number;
}

/** What stands where boxes of less than `least` are left out: siblings are in the order of their size, so these come last. */
export function rests(shown: readonly Box[], least: number): Rest[] {
  const of = new Map<number, Rest>();
  const drawn = new Set(shown.filter((box) => box.size >= least).map((box) => box.node));
  for (const { node, parent, depth, start, size } of shown) {
    if (drawn.has(node) || (depth > 0 && !drawn.has(parent))) continue;
    const rest = of.get(parent) ?? { depth, start, size: 0, boxes: 0 };
    of.set(parent, { ...rest, size: rest.size + size, boxes: rest.boxes + 1 });
  }
  return [...of.values()].filter((rest) => rest.size >= least);
}

export type Direction = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight";

/** Where an arrow key leads: to what the box lies in, to the largest in it, to a neighbour in the same row. */
export function neighbour(all: readonly Box[], node: number, key: Direction): number {
  const here = all.find((box) => box.node === node);
  if (!here) return all[0]?.node ?? -1;
  if (key === "ArrowUp") return all.some((box) => box.node === here.parent) ? here.parent : node;
  if (key === "ArrowDown") return all.find((box) => box.parent === node)?.node ?? node;
  const row = all.filter((box) => box.depth === here.depth).sort((a, b) => a.start - b.start);
  const at = row.indexOf(here) + (key === "ArrowRight" ? 1 : -1);
  return row[at]?.node ?? node;
}
