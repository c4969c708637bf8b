/** Sorting, filtering and CSV of a table, without drawing. */

import { pattern } from "@/timeline/linearRegex";

export type Cell = string | number | null;

export interface TableColumn<Row> {
  readonly key: string;
  readonly title: string;
  /** For sorting and CSV: the plain value (numbers in the unit that `title` or `unit` names). */
  readonly value: (row: Row) => Cell;
  /** The shown text; by default the value itself. */
  readonly text?: (row: Row) => string;
  /** Numbers: right-aligned, sorted descending first. */
  readonly numeric?: boolean;
  /** A CSS grid track, `minmax(120px, 2fr)`. */
  readonly width?: string;
  /** 0..1: a bar behind the text. */
  readonly bar?: (row: Row) => number;
  /** The value's unit in CSV, `ns`. */
  readonly unit?: string;
  /** What the column means, as a tooltip. */
  readonly hint?: string;
  /** Names and code: a fixed-width font. */
  readonly mono?: boolean;
}

/** Return a column's CSS grid track. */
export function trackOf(column: Pick<TableColumn<never>, "width" | "numeric">): string {
  return column.width ?? (column.numeric ? "96px" : "minmax(140px, 1fr)");
}

/** Return the least width in pixels of a row with these tracks; `minmax(110px, 210px)` counts as 110. */
export function leastWidth(tracks: readonly string[]): number {
  return tracks.reduce((sum, track) => sum + Number(/\d{1,5}(?=px)/.exec(track)?.[0] ?? 0), 0);
}

export interface TableSort {
  readonly key: string;
  readonly descending: boolean;
}

function compare(a: Cell, b: Cell): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/** Return a sorted copy, or `rows` itself without a sort. Missing values always come last; equal rows keep their order. */
export function sortRows<Row>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  sort: TableSort | null,
): readonly Row[] {
  const column = sort && columns.find((c) => c.key === sort.key);
  if (!column) return rows;
  const direction = sort.descending ? -1 : 1;
  const keyed = rows.map((row) => ({ row, cell: column.value(row) }));
  keyed.sort((a, b) => {
    if (a.cell === null || b.cell === null) return a.cell === b.cell ? 0 : a.cell === null ? 1 : -1;
    return direction * compare(a.cell, b.cell);
  });
  return keyed.map((k) => k.row);
}

/** Return the order after a click on a column's head: numbers descending (texts ascending), then reversed, then unsorted. */
export function nextSort<Row>(column: TableColumn<Row>, sort: TableSort | null): TableSort | null {
  const first = column.numeric === true;
  if (sort?.key !== column.key) return { key: column.key, descending: first };
  return sort.descending === first ? { key: column.key, descending: !first } : null;
}

function cellText<Row>(column: TableColumn<Row>, row: Row): string {
  return column.text ? column.text(row) : String(column.value(row) ?? "");
}

export { cellText };

/** Return a test that also accepts the texts on which `test` throws, because the expression is too complex for them. */
function acceptOnError(test: (text: string) => boolean): (text: string) => boolean {
  return (text) => {
    try {
      return test(text);
    } catch {
      return true;
    }
  };
}

/**
 * Return a test for the text of a filter: a `/regular expression/`, or words that must all occur, ignoring case. Returns null if
 * the expression is not valid.
 */
export function matcher(filter: string): ((text: string) => boolean) | null {
  const trimmed = filter.trim();
  if (trimmed.startsWith("/")) {
    try {
      return acceptOnError(pattern(trimmed.slice(1).replace(/\/$/, "")));
    } catch {
      return null;
    }
  }
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return (text) => {
    const lower = text.toLowerCase();
    return words.every((word) => lower.includes(word));
  };
}

/** Return the rows whose text columns match; all rows if the filter is empty or not a valid expression. */
export function filterRows<Row>(
  rows: readonly Row[],
  columns: readonly TableColumn<Row>[],
  filter: string,
): readonly Row[] {
  const test = filter.trim() ? matcher(filter) : null;
  if (!test) return rows;
  const searched = columns.filter((c) => c.numeric !== true);
  return rows.filter((row) => test(searched.map((c) => cellText(c, row)).join("\n")));
}

function quoted(text: string): string {
  // A spreadsheet must not run a cell as a formula: names may come from somebody else's file.
  const safe = /^[=+\-@\t\r]/.test(text) && Number.isNaN(Number(text)) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Return CSV by RFC 4180, with the units in the head and plain numbers in the cells. */
export function toCsv<Row>(rows: readonly Row[], columns: readonly TableColumn<Row>[]): string {
  const head = columns.map((c) => quoted(c.unit ? `${c.title} (${c.unit})` : c.title));
  const lines = rows.map((row) => columns.map((c) => quoted(String(c.value(row) ?? ""))).join(","));
  return [head.join(","), ...lines].join("\r\n") + "\r\n";
}

/** Return the range of rows in the visible part, plus a few rows on both sides. Heights and `top` are in pixels. */
export function visibleRange(
  top: number,
  height: number,
  rowHeight: number,
  count: number,
): { first: number; last: number } {
  const around = 6;
  const first = Math.max(0, Math.floor(top / rowHeight) - around);
  return { first, last: Math.min(count, Math.ceil((top + height) / rowHeight) + around) };
}
