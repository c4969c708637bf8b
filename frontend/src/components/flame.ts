/** The layout of a flame graph: the place of each box. It does not draw, and works for any tree. */

/** A tree of nodes. A node comes after its parent. */
export interface Tree {
  /** -1 for a root. */
  readonly parent: readonly number[];
  /** Sizes without the children. */
  readonly own: readonly number[];
}

/** A node's box. `start` and `size` are on the graph's x axis, on which sizes add up; the order has no meaning. */
export interface Box {
  readonly node: number;
  readonly parent: number;
  readonly depth: number;
  readonly start: number;
  readonly size: number;
  /** The size without the children. */
  readonly own: number;
}

/** Return each node's size with all its descendants. */
export function sums(parent: readonly number[], own: readonly number[]): number[] {
  const totals = [...own];
  for (let node = totals.length - 1; node >= 0; node--) {
    const above = parent[node]!;
    if (above >= 0) totals[above]! += totals[node]!;
  }
  return totals;
}

/** Return the boxes of a tree: each before its children, siblings by size, the largest first. */
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

/** Return a node's box and all boxes below it, moved to the graph's start; all boxes if `root` is null or not in the tree. */
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

/** Siblings that are too narrow to draw, as one box. */
export interface Rest {
  readonly depth: number;
  readonly start: number;
  readonly size: number;
  readonly boxes: number;
}

/**
 * Return one box for each group of siblings that are narrower than `minSize` and whose parent is drawn. Siblings are sorted by
 * size, so the narrow ones are neighbours. A group that is itself narrower than `minSize` is left out.
 */
export function rests(shown: readonly Box[], minSize: number): Rest[] {
  const restOfParent = new Map<number, Rest>();
  const drawn = new Set(shown.filter((box) => box.size >= minSize).map((box) => box.node));
  for (const { node, parent, depth, start, size } of shown) {
    if (drawn.has(node) || (depth > 0 && !drawn.has(parent))) continue;
    const rest = restOfParent.get(parent) ?? { depth, start, size: 0, boxes: 0 };
    restOfParent.set(parent, { ...rest, size: rest.size + size, boxes: rest.boxes + 1 });
  }
  return [...restOfParent.values()].filter((rest) => rest.size >= minSize);
}

export type Direction = "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight";

/** Return the node that an arrow key leads to: the parent, the largest child, or a neighbour in the row; else `node`. */
export function neighbour(all: readonly Box[], node: number, key: Direction): number {
  const here = all.find((box) => box.node === node);
  if (!here) return all[0]?.node ?? -1;
  if (key === "ArrowUp") return all.some((box) => box.node === here.parent) ? here.parent : node;
  if (key === "ArrowDown") return all.find((box) => box.parent === node)?.node ?? node;
  const row = all.filter((box) => box.depth === here.depth).sort((a, b) => a.start - b.start);
  const at = row.indexOf(here) + (key === "ArrowRight" ? 1 : -1);
  return row[at]?.node ?? node;
}
