/** The columns of tables of ops, shared by the analyses that list them. */
import type { OpRow } from "@/client/messages";
import type { TableColumn } from "@/components/table";
import { formatCount, formatNs, formatShare, shortDevice } from "@/format";

type NumberKey = "total_ns" | "self_ns" | "mean_ns" | "max_ns" | "host_ns" | "device_ns" | "delay_ns";

export function time(key: NumberKey, title: string, hint: string): TableColumn<OpRow> {
  return {
    key,
    title,
    hint,
    numeric: true,
    unit: "ns",
    value: (r) => r[key],
    text: (r) => formatNs(r[key]),
    width: "92px",
  };
}

export function opColumns(by: "type" | "name" | "scope", rows: readonly OpRow[]): TableColumn<OpRow>[] {
  const largest = rows.reduce((most, row) => Math.max(most, row.total_ns), 0);
  const names = { type: "Op type", name: "Node", scope: "Scope" } as const;
  const first: TableColumn<OpRow> = {
    key: "key",
    title: names[by],
    value: (r) => r.key,
    text: (r) => r.key || "(no scope)",
    mono: true,
    width: "minmax(180px, 3fr)",
    bar: (r) => (largest > 0 ? r.total_ns / largest : 0),
  };
  const op: TableColumn<OpRow> = { key: "op", title: "Op", value: (r) => r.op, width: "minmax(90px, 1fr)" };
  const device: TableColumn<OpRow> = {
    key: "device",
    title: "Device",
    value: (r) => r.device,
    text: (r) => shortDevice(r.device),
    width: "minmax(90px, 1fr)",
  };
  return [
    first,
    ...(by === "name" ? [op, device] : []),
    {
      key: "count",
      title: "Count",
      numeric: true,
      value: (r) => r.count,
      text: (r) => formatCount(r.count),
      width: "72px",
    },
    time("total_ns", "Total", "Sum of all executions"),
    {
      key: "share",
      title: "Share",
      numeric: true,
      value: (r) => r.share,
      text: (r) => formatShare(r.share),
      width: "72px",
      hint: "Of the sum of all counted work",
    },
    time("self_ns", "Self", "Total without what ran nested inside"),
    time("mean_ns", "Mean", "Total by count"),
    time("max_ns", "Longest", "The longest execution; a click selects it"),
    time("host_ns", "Host", "On the host: CPU ops and launches"),
    time("device_ns", "Device", "Kernels on a GPU, joined by name"),
    time("delay_ns", "Waiting", "Sum of scheduled to start"),
  ];
}
