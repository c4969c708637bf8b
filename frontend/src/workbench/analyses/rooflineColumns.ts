/** The columns of the table beside the roofline. */
import type { RooflineRow } from "@/client/messages";
import type { TableColumn } from "@/components/table";
import {
  bytesColumn,
  countColumn,
  deviceColumn,
  figureColumn,
  nameColumn,
  nsColumn,
  opColumn,
} from "@/components/columns";
import { formatBytes, formatFlops, formatShare, significant } from "@/format";

const ROOF_TEXTS = {
  measured: "what was measured",
  peak: "the GPU's peak",
  best: "the best that the run's traces reached",
} as const;

/** Return what share of its roof's rate a row reaches, and which roof that is. */
function shareOfRoof(row: RooflineRow): string {
  return row.judged_by === null ? "–" : `${formatShare(row.of_roof)} of ${ROOF_TEXTS[row.judged_by]}`;
}

function rate(perSecond: number, format: (amount: number) => string): string {
  return perSecond === 0 ? "0" : `${format(perSecond)}/s`;
}

export function rooflineColumns(by: "name" | "type", rows: readonly RooflineRow[]): TableColumn<RooflineRow>[] {
  const largest = rows.reduce((most, row) => Math.max(most, row.total_ns), 1);
  return [
    nameColumn("key", by === "name" ? "Node" : "Op type", (row) => row.key, { bar: (row) => row.total_ns / largest }),
    ...(by === "name" ? [opColumn<RooflineRow>()] : []),
    deviceColumn("device", "Device", (row) => row.device),
    { key: "dtype", title: "Numbers", value: (row) => row.dtype, width: "80px" },
    countColumn("count", "Count", (row) => row.count),
    nsColumn("total_ns", "Time", (row) => row.total_ns, { hint: "Of all executions", width: "92px" }),
    figureColumn(
      "flops_per_s",
      "FLOP/s",
      "FLOP/s",
      (row) => row.flops_per_s,
      (n) => rate(n, formatFlops),
      {
        hint: "Nominal operations of matrix ops, by the time; other ops have none",
        width: "110px",
      },
    ),
    figureColumn(
      "bytes_per_s",
      "Bytes/s",
      "B/s",
      (row) => row.bytes_per_s,
      (n) => rate(n, formatBytes),
      {
        hint: "Bytes that have to be read and written at least, by the time",
        width: "100px",
      },
    ),
    figureColumn("intensity", "FLOP/byte", "FLOP/B", (row) => row.intensity, significant, { width: "92px" }),
    {
      ...figureColumn<RooflineRow>("of_roof", "Of roof", "", (row) => row.of_roof, formatShare, {
        hint: "The rate, of what the roof allows at these FLOPs a byte",
        width: "minmax(180px, 1fr)",
      }),
      text: shareOfRoof,
    },
    bytesColumn("bytes", "Bytes", (row) => row.bytes, { width: "92px" }),
  ];
}
