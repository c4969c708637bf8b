/** What ops compute, and how fast: the columns of FLOPs and memory traffic in the table of ops. */
import type { ComputingOpRow } from "@/client/messages";
import type { TableColumn } from "@/components/table";
import { figureColumn } from "@/components/columns";
import { formatBytes, formatFlops, significant } from "@/format";

type Row = ComputingOpRow;

const UNKNOWN = "unknown";
const FLOPS = "Floating-point operations of matrix ops, nominal: padding counts, other ops count 0";
const BYTES = "What the ops have to read and write at least, if no cache holds it: inputs and outputs once";
const TIME = "By the total; on a GPU by the time of the kernels";

/** Return how long the ops computed, in ns: the time of their kernels if there are any, else the total. */
function workNs(row: Row): number {
  return row.device_ns > 0 ? row.device_ns : row.total_ns;
}

/** Return an amount per second; null if the amount of some execution (`unknown`: of how many) or the time is unknown. */
function rate(row: Row, amount: number | null, unknown: number): number | null {
  const ns = workNs(row);
  return amount === null || unknown > 0 || ns <= 0 ? null : (amount / ns) * 1e9;
}

export function flopRate(row: Row): number | null {
  return rate(row, row.flops, row.flops_unknown);
}

export function byteRate(row: Row): number | null {
  return rate(row, row.bytes, row.bytes_unknown);
}

/** Return FLOPs per byte; null if either is unknown, or nothing is moved. */
export function intensity(row: Row): number | null {
  const isKnown = row.flops_unknown === 0 && row.bytes_unknown === 0;
  return isKnown && row.flops !== null && row.bytes ? row.flops / row.bytes : null;
}

/** Mark a sum as a lower bound if the amount of some executions is unknown. */
function atLeast(text: string, unknown: number): string {
  return unknown > 0 ? `\u2265 ${text}` : text;
}

function column(
  key: string,
  title: string,
  unit: string,
  value: (row: Row) => number | null,
  format: (figure: number, row: Row) => string,
  hint: string,
): TableColumn<Row> {
  const text = (row: Row): string => {
    const figure = value(row);
    return figure === null ? UNKNOWN : figure === 0 ? "0" : format(figure, row);
  };
  return { ...figureColumn(key, title, unit, value, String, { hint, width: "100px" }), text };
}

export const computedColumns: TableColumn<Row>[] = [
  column(
    "flops",
    "FLOPs",
    "FLOP",
    (row) => row.flops,
    (n, row) => atLeast(formatFlops(n), row.flops_unknown),
    FLOPS,
  ),
  column("flop_rate", "FLOP/s", "FLOP/s", flopRate, (n) => `${formatFlops(n)}/s`, `${FLOPS}. ${TIME}`),
  column(
    "bytes",
    "Traffic",
    "B",
    (row) => row.bytes,
    (n, row) => atLeast(formatBytes(n), row.bytes_unknown),
    BYTES,
  ),
  column("byte_rate", "Traffic/s", "B/s", byteRate, (n) => `${formatBytes(n)}/s`, `${BYTES}. ${TIME}`),
  column(
    "intensity",
    "FLOP/byte",
    "FLOP/B",
    intensity,
    significant,
    "FLOPs by traffic: what needs little is bound by memory",
  ),
];
