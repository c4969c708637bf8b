/** The columns of the table of layers. */
import type { LayerPhase, Layers } from "@/client/messages";
import { bytesColumn, nameColumn, nsColumn, shareColumn } from "@/components/columns";
import type { TableColumn } from "@/components/table";
import { PHASES, type LayerRow } from "./layers";

export function layerColumns(
  quantity: Layers["of"],
  phases: readonly LayerPhase[],
  total: number,
): TableColumn<LayerRow>[] {
  const amount = quantity === "time" ? nsColumn<LayerRow> : bytesColumn<LayerRow>;
  const share = (row: LayerRow): number => (total > 0 ? row.total / total : 0);
  const width = "112px";
  return [
    nameColumn("path", "Layer", (row) => row.path, { bar: share }),
    amount("total", "Total", (row) => row.total, { hint: "With the layers in it" }),
    shareColumn("share", "Share", share),
    ...phases.map((phase) => amount(phase, PHASES[phase], (row) => row.phases[phase], { width })),
    amount("own", "Own", (row) => row.own, { hint: "Without the layers in it" }),
  ];
}
