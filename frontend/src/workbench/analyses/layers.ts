/** Prepares an answer's layers for the page: their paths, their phases, and a filter that finds a layer's ops. */
import type { Layer, LayerPhase, Layers } from "@/client/messages";
import { sums, type Tree } from "@/components/flame";

export const PHASES: Record<LayerPhase, string> = {
  forward: "Forward",
  backward: "Backward",
  optimizer: "Optimizer",
  communication: "Communication",
  input: "Input",
  variables: "Variables",
};

export function fillOf(phase: LayerPhase): string {
  return `var(--phase-${phase})`;
}

export interface LayerRow {
  readonly index: number;
  readonly layer: Layer;
  /** Such as `model/dense`. */
  readonly path: string;
  /** Time in ns, or bytes. `total` and `phases` include the layers within this one, `own` does not. */
  readonly total: number;
  readonly phases: Readonly<Record<LayerPhase, number>>;
  readonly own: number;
}

export interface LayerTable {
  readonly tree: Tree;
  readonly rows: readonly LayerRow[];
  /** The phases in which something was measured, in the order of the answer. */
  readonly phases: readonly LayerPhase[];
}

function nameOf(layer: Layer): string {
  return layer.kind === "others" ? `(others: ${layer.folded})` : layer.name;
}

export function layerTable(answer: Layers): LayerTable {
  const { layers } = answer;
  const parent = layers.map((layer) => layer.parent);
  const own = layers.map((layer) => layer.own.reduce((sum, amount) => sum + amount, 0));
  const total = sums(parent, own);
  const byPhase = answer.phases.map((_, at) =>
    sums(
      parent,
      layers.map((layer) => layer.own[at]!),
    ),
  );
  const paths: string[] = [];
  const rows = layers.map((layer, index) => {
    paths.push(layer.parent < 0 ? nameOf(layer) : `${paths[layer.parent]}/${nameOf(layer)}`);
    const phases = Object.fromEntries(answer.phases.map((phase, at) => [phase, byPhase[at]![index]!]));
    const row = { index, layer, path: paths[index]!, total: total[index]!, own: own[index]! };
    return { ...row, phases: phases as Record<LayerPhase, number> };
  });
  const measuredPhases = answer.phases.filter((_, at) => layers.some((layer) => layer.own[at]! > 0));
  return { tree: { parent, own }, rows, phases: measuredPhases };
}

export interface OpsFilter {
  readonly by: "type" | "name";
  /** The filter of the table of ops. */
  readonly rows: string;
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
}

/** A regular expression for what TensorFlow may put between the parts of a path, such as gradients and the bodies of loops. */
const BETWEEN_PARTS = "(_grad(_\\d+)?)?\\/((body|cond|then|else)\\/_\\d+\\/(.*\\/)?)?";

/** Return a filter for the Ops tab that finds a layer's ops, as far as their names allow; null if the names share nothing. */
export function opsOf(row: LayerRow): OpsFilter | null {
  const { layer, path, phases } = row;
  if (layer.kind === "layer") {
    const between = path.split("/").map(escaped).join(BETWEEN_PARTS);
    return { by: "name", rows: `/(^|\\/|update_)${between}(_grad)?(\\/|$)/` };
  }
  if (layer.kind !== "none" || layer.parent < 0) return null;
  return phases.optimizer > 0
    ? { by: "name", rows: `/(^|\\/)${escaped(layer.name)}(_\\d+)?\\//` }
    : { by: "type", rows: `/^${escaped(layer.name)}$/` };
}
