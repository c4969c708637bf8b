/** The columns of links and of single transfers: the same for one process's trace and for a job's trace. */
import type { Link, Transfer } from "@/client/messages";
import type { TableColumn } from "@/components/table";
import { formatBytes } from "@/format";
import {
  bytesColumn,
  countColumn,
  deviceColumn,
  figureColumn,
  nameColumn,
  nsColumn,
  opColumn,
} from "@/components/columns";

function bandwidth(bytesPerSecond: number): string {
  return bytesPerSecond > 0 ? `${formatBytes(bytesPerSecond)}/s` : "–";
}

export const linkColumns: readonly TableColumn<Link>[] = [
  deviceColumn("source", "From", (r) => r.source, "minmax(140px, 2fr)"),
  deviceColumn("destination", "To", (r) => r.destination, "minmax(140px, 2fr)"),
  countColumn("messages", "Messages", (r) => r.messages, "96px"),
  bytesColumn("bytes", "Bytes", (r) => r.bytes),
  nsColumn("wire_ns", "On the wire", (r) => r.wire_ns),
  nsColumn("waited_ns", "Waited for", (r) => r.waited_ns),
  figureColumn("mean_bandwidth", "Bandwidth", "B/s", (r) => r.mean_bandwidth, bandwidth),
];

export const transferColumns: readonly TableColumn<Transfer>[] = [
  nameColumn("tensor", "Tensor", (r) => r.tensor),
  opColumn(),
  deviceColumn("source", "From", (r) => r.source, "minmax(100px, 1fr)"),
  deviceColumn("destination", "To", (r) => r.destination, "minmax(100px, 1fr)"),
  bytesColumn("bytes", "Bytes", (r) => r.bytes),
  nsColumn("start", "Start", (r) => r.start_ns),
  nsColumn("duration", "Duration", (r) => r.end_ns - r.start_ns),
  figureColumn("bandwidth", "Bandwidth", "B/s", (r) => r.bandwidth, bandwidth),
];
