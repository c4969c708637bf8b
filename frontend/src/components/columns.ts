/** Columns that the tables share, so that times, sizes and devices look the same everywhere. */
import type { TableColumn } from "@/components/table";
import { formatBytes, formatCount, formatNs, formatSeconds, formatShare, NONE, shortDevice } from "@/format";

/** What a table may set in addition: a hint, a bar, another width, another text. */
type More<Row> = Partial<TableColumn<Row>>;
/** Returns a row's number; null if it is unknown, which is shown as a dash. */
type Figure<Row> = (row: Row) => number | null;

export function figureColumn<Row>(
  key: string,
  title: string,
  unit: string,
  value: Figure<Row>,
  format: (figure: number) => string,
  more: More<Row> = {},
): TableColumn<Row> {
  const text = (row: Row): string => {
    const figure = value(row);
    return figure === null ? NONE : format(figure);
  };
  return { key, title, numeric: true, unit, value, text, ...more };
}

export function nsColumn<Row>(key: string, title: string, value: Figure<Row>, more?: More<Row>): TableColumn<Row> {
  return figureColumn(key, title, "ns", value, formatNs, more);
}

export function secondsColumn<Row>(key: string, title: string, value: Figure<Row>, more?: More<Row>): TableColumn<Row> {
  return figureColumn(key, title, "s", value, formatSeconds, more);
}

export function bytesColumn<Row>(key: string, title: string, value: Figure<Row>, more?: More<Row>): TableColumn<Row> {
  return figureColumn(key, title, "B", value, formatBytes, more);
}

export function countColumn<Row>(
  key: string,
  title: string,
  value: (row: Row) => number,
  width = "80px",
): TableColumn<Row> {
  return { key, title, numeric: true, width, value, text: (row) => formatCount(value(row)) };
}

/** `value` returns a share, 0..1. */
export function shareColumn<Row>(
  key: string,
  title: string,
  value: (row: Row) => number,
  more?: More<Row>,
): TableColumn<Row> {
  return { key, title, numeric: true, width: "80px", value, text: (row) => formatShare(value(row)), ...more };
}

/** A column of names, in a fixed-width font, as wide as there is room. */
export function nameColumn<Row>(
  key: string,
  title: string,
  value: (row: Row) => string,
  more?: More<Row>,
): TableColumn<Row> {
  return { key, title, value, mono: true, width: "minmax(180px, 3fr)", ...more };
}

export function opColumn<Row extends { readonly op: string }>(): TableColumn<Row> {
  return { key: "op", title: "Op", value: (row) => row.op, width: "minmax(90px, 1fr)" };
}

/** A column of devices: shows short names, but sorts and copies by the full ones. */
export function deviceColumn<Row>(
  key: string,
  title: string,
  value: (row: Row) => string,
  width = "minmax(90px, 1fr)",
): TableColumn<Row> {
  return { key, title, value, text: (row) => shortDevice(value(row)), width };
}
