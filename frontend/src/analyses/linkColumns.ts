/** The columns of links and of single transfers: the same for one trace and for a job's. */
import type { Link, Transfer } from "@/client/messages";
import type { TableColumn } from "@/components/table";
import { formatBytes, formatCount, formatNs, shortDevice } from "@/format";

function bandwidth(bytesPerSecond: number): string {
  return bytesPerSecond > 0 ? `${formatBytes(bytesPerSecond)}/s` : "–";
}
function figure<Row>(
  key: string,
  title: string,
  unit: string,
  value: (row: Row) => number,
  text: (n: number) => string,
): TableColumn<Row> {
  return { key, title, numeric: true, unit, value, text: (row) => text(value(row)) };
}

export const linkColumns: readonly TableColumn<Link>[] = [
  {
    key: "source",
    title: "From",
    value: (r) => r.source,
    text: (r) => shortDevice(r.source),
    width: "minmax(140px, 2fr)",
  },
  {
    key: "destination",
    title: "To",
    value: (r) => r.destination,
    text: (r) => shortDevice(r.destination),
    width: "minmax(140px, 2fr)",
  },
  {
    key: "messages",
    title: "Messages",
    numeric: true,
    value: (r) => r.messages,
    text: (r) => formatCount(r.messages),
  },
  figure("bytes", "Bytes", "B", (r) => r.bytes, formatBytes),
  figure("wire_ns", "On the wire", "ns", (r) => r.wire_ns, formatNs),
  figure("waited_ns", "Waited for", "ns", (r) => r.waited_ns, formatNs),
  figure("mean_bandwidth", "Bandwidth", "B/s", (r) => r.mean_bandwidth, bandwidth),
];

export const transferColumns: readonly TableColumn<Transfer>[] = [
  { key: "tensor", title: "Tensor", value: (r) => r.tensor, mono: true, width: "minmax(180px, 3fr)" },
  { key: "op", title: "Op", value: (r) => r.op, width: "minmax(90px, 1fr)" },
  {
    key: "source",
    title: "From",
    value: (r) => r.source,
    text: (r) => shortDevice(r.source),
    width: "minmax(100px, 1fr)",
  },
  {
    key: "destination",
    title: "To",
    value: (r) => r.destination,
    text: (r) => shortDevice(r.destination),
    width: "minmax(100px, 1fr)",
  },
  figure("bytes", "Bytes", "B", (r) => r.bytes, formatBytes),
  figure("start", "Start", "ns", (r) => r.start_ns, formatNs),
  figure("duration", "Duration", "ns", (r) => r.end_ns - r.start_ns, formatNs),
  figure("bandwidth", "Bandwidth", "B/s", (r) => r.bandwidth, bandwidth),
];
