/** The layout of a small graph in layers: inputs left, consumers right of the node in the middle. Pure geometry. */
import type { Neighbourhood, NodeRef } from "@/client/messages";

export interface Box {
  readonly ref: NodeRef;
  readonly x: number;
  readonly y: number;
  readonly layer: number;
}

export interface Drawn {
  readonly boxes: readonly Box[];
  /** For each edge, the boxes of producer and consumer. */
  readonly edges: readonly (readonly [Box, Box])[];
  readonly width: number;
  readonly height: number;
}

export const BOX = { width: 190, height: 38, gapX: 70, gapY: 12 } as const;

/** Return how far each node is from the centre by the shortest way along the edges: negative before it, positive after it. */
export function layersOf(graph: Neighbourhood, centre: number): number[] {
  const layer: (number | undefined)[] = graph.nodes.map(() => undefined);
  layer[centre] = 0;
  let frontier = [centre];
  while (frontier.length) {
    const next: number[] = [];
    const place = (node: number, nodeLayer: number): void => {
      if (layer[node] !== undefined) return;
      layer[node] = nodeLayer;
      next.push(node);
    };
    for (const [from, to] of graph.edges as [number, number][]) {
      for (const node of frontier) {
        const here = layer[node] ?? 0;
        if (to === node && here <= 0) place(from, here - 1);
        if (from === node && here >= 0) place(to, here + 1);
      }
    }
    frontier = next;
  }
  return layer.map((value) => value ?? 0);
}

/** Place the boxes: one column for each layer, centred vertically. Return the boxes, the edges, and the size in pixels. */
export function draw(graph: Neighbourhood, centre: number): Drawn {
  const layers = layersOf(graph, centre);
  const first = Math.min(0, ...layers);
  const columns = new Map<number, number[]>();
  layers.forEach((layer, i) => columns.set(layer, [...(columns.get(layer) ?? []), i]));
  const tallest = Math.max(1, ...[...columns.values()].map((c) => c.length));
  const height = tallest * (BOX.height + BOX.gapY);
  const boxes: Box[] = [];
  for (const [layer, members] of columns) {
    const top = (height - members.length * (BOX.height + BOX.gapY)) / 2;
    members.forEach((i, row) => {
      const ref = graph.nodes[i];
      if (ref)
        boxes[i] = { ref, layer, x: (layer - first) * (BOX.width + BOX.gapX), y: top + row * (BOX.height + BOX.gapY) };
    });
  }
  const edges = (graph.edges as [number, number][]).flatMap(([from, to]) => {
    const a = boxes[from];
    const b = boxes[to];
    return a && b ? [[a, b] as const] : [];
  });
  const last = Math.max(0, ...layers);
  return { boxes: boxes.filter(Boolean), edges, width: (last - first) * (BOX.width + BOX.gapX) + BOX.width, height };
}
