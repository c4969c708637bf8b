/** The columns of tables of op statistics, shared by the analyses that list them. */
import type { OpRow } from "@/client/messages";
import type { TableColumn } from "@/components/table";
import { formatNs } from "@/format";
import {
  countColumn,
  deviceColumn,
  figureColumn,
  nameColumn,
  nsColumn,
  opColumn,
  shareColumn,
} from "@/components/columns";

type NumberKey = "total_ns" | "self_ns" | "mean_ns" | "max_ns" | "host_ns" | "device_ns";

function time<Row extends OpRow>(key: NumberKey, title: string, hint: string): TableColumn<Row> {
  return nsColumn(key, title, (row) => row[key], { hint, width: "92px" });
}

/** Columns for time on the host and on GPUs; a step that used only the CPU does not have them. */
function onDevice<Row extends OpRow>(): TableColumn<Row>[] {
  return [
    time("host_ns", "Host", "On the host: CPU ops and launches"),
    time("device_ns", "Device", "Kernels on a GPU, joined by name"),
  ];
}

/** Return a delay as text; -1 means that no scheduling time is known. */
function delay(ns: number): string {
  return ns < 0 ? "unknown" : formatNs(ns);
}

export function opColumns<Row extends OpRow>(by: "type" | "name" | "scope", rows: readonly Row[]): TableColumn<Row>[] {
  const largest = rows.reduce((most, row) => Math.max(most, row.total_ns), 0);
  const names = { type: "Op type", name: "Node", scope: "Scope" } as const;
  const first: TableColumn<Row> = {
    ...nameColumn("key", names[by], (row: Row) => row.key, {
      bar: (row) => (largest > 0 ? row.total_ns / largest : 0),
    }),
    text: (row) => row.key || "(no scope)",
  };
  return [
    first,
    ...(by === "name" ? [opColumn<Row>(), deviceColumn<Row>("device", "Device", (row) => row.device)] : []),
    countColumn("count", "Count", (row) => row.count),
    time("total_ns", "Total", "Sum of all executions"),
    shareColumn("share", "Share", (row) => row.share, { hint: "Of the sum of all counted work" }),
    time("self_ns", "Self", "Total without what ran nested inside"),
    time("mean_ns", "Mean", "Total by count"),
    time("max_ns", "Longest", "The longest execution; a click selects it"),
    ...(rows.some((row) => row.device_ns > 0) ? onDevice<Row>() : []),
    figureColumn("delay_ns", "Waiting", "ns", (row) => row.delay_ns ?? -1, delay, {
      hint: "Sum of scheduled to start",
      width: "92px",
    }),
  ];
}
