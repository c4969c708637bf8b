/** The graph around a node, walked over the nodes' details: what trace/node.py answers where there is a server. */
import type { Neighbourhood, NodeDetail, NodeRef } from "./messages";

/** As many nodes as the server takes. */
const MOST = 200;

function linked(detail: NodeDetail): NodeRef[] {
  return [...detail.inputs, ...detail.control_inputs, ...detail.consumers].filter((ref) => ref.node >= 0);
}

/** The nodes at most `depth` links away, nearest first, at most 200 of them, and the links among them. */
export function neighbourhood(
  details: (node: number) => NodeDetail | undefined,
  node: number,
  depth: number,
): Neighbourhood | undefined {
  const first = details(node);
  if (!first) return undefined;
  const { name, op, device } = first;
  const place = new Map<number, number>([[node, 0]]);
  const nodes: NodeRef[] = [{ node, name, op, device }];
  const leftOut = new Set<number>();
  const queue = [{ detail: first, distance: 0 }];
  for (let next = queue.shift(); next; next = queue.shift()) {
    if (next.distance >= depth) continue;
    for (const ref of linked(next.detail)) {
      if (place.has(ref.node)) continue;
      if (nodes.length >= MOST) leftOut.add(ref.node);
      else {
        place.set(ref.node, nodes.length);
        nodes.push(ref);
        const detail = details(ref.node);
        if (detail) queue.push({ detail, distance: next.distance + 1 });
      }
    }
  }
  return { nodes, edges: edgesAmong(details, place), left_out: leftOut.size };
}

function edgesAmong(details: (node: number) => NodeDetail | undefined, place: ReadonlyMap<number, number>): number[][] {
  const edges: number[][] = [];
  for (const [node, at] of place) {
    const detail = details(node);
    const producers = new Set(
      [...(detail?.inputs ?? []), ...(detail?.control_inputs ?? [])].map((r) => place.get(r.node)),
    );
    for (const producer of producers) if (producer !== undefined) edges.push([producer, at]);
  }
  return edges;
}
