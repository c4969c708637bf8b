import { describe, expect, it } from "vitest";
import {
  filterRows,
  leastWidth,
  matcher,
  nextSort,
  sortRows,
  toCsv,
  trackOf,
  visibleRange,
  type TableColumn,
} from "./table";

interface Row {
  name: string;
  ns: number | null;
}

const columns: TableColumn<Row>[] = [
  { key: "name", title: "Name", value: (r) => r.name },
  { key: "ns", title: "Time", value: (r) => r.ns, text: (r) => `${r.ns} ns`, numeric: true, unit: "ns" },
];
const rows: Row[] = [
  { name: "MatMul_10", ns: 5 },
  { name: "MatMul_9", ns: null },
  { name: "Relu", ns: 12 },
];
const names = (some: readonly Row[]): string[] => some.map((r) => r.name);

describe("the width of a table", () => {
  it("is at least the sum of its columns' least widths", () => {
    const tracks = [{ width: "92px" }, { width: "minmax(110px, 210px)" }, { numeric: true }, {}].map(trackOf);
    expect(tracks).toEqual(["92px", "minmax(110px, 210px)", "96px", "minmax(140px, 1fr)"]);
    expect(leastWidth(tracks)).toBe(92 + 110 + 96 + 140);
  });
});

describe("sorting", () => {
  it("orders numbers in names by value", () => {
    expect(names(sortRows(rows, columns, { key: "name", descending: false }))).toEqual([
      "MatMul_9",
      "MatMul_10",
      "Relu",
    ]);
  });

  it.each([true, false])("puts missing values last (descending: %s)", (descending) => {
    expect(names(sortRows(rows, columns, { key: "ns", descending })).at(-1)).toBe("MatMul_9");
  });

  it("leaves the rows alone without a sort or with one that no column has", () => {
    expect(sortRows(rows, columns, null)).toBe(rows);
    expect(sortRows(rows, columns, { key: "gone", descending: true })).toBe(rows);
  });

  it("goes largest first, smallest first, off, for numbers; the other way round for names", () => {
    const [name, time] = columns as [TableColumn<Row>, TableColumn<Row>];
    const first = nextSort(time, null);
    expect(first).toEqual({ key: "ns", descending: true });
    const second = nextSort(time, first);
    expect(second).toEqual({ key: "ns", descending: false });
    expect(nextSort(time, second)).toBeNull();
    expect(nextSort(name, first)).toEqual({ key: "name", descending: false });
  });
});

describe("filtering", () => {
  it("needs all words and ignores case", () => {
    expect(names(filterRows(rows, columns, "matmul 9"))).toEqual(["MatMul_9"]);
  });

  it("takes a regular expression between slashes", () => {
    expect(names(filterRows(rows, columns, "/^relu$|_1/"))).toEqual(["MatMul_10", "Relu"]);
  });

  it("shows everything while an expression is not valid", () => {
    expect(matcher("/(/")).toBeNull();
    expect(filterRows(rows, columns, "/(/")).toBe(rows);
  });

  it("is not held up by an expression that backtracks", () => {
    const text = `${"a".repeat(200)}!`;
    expect(matcher("/(a+)+$/")!(text)).toBe(false);
    expect(matcher("/(a|a)*b/")!(text)).toBe(false);
  });

  it("does not search numbers", () => {
    expect(filterRows(rows, columns, "12 ns")).toEqual([]);
  });
});

describe("CSV", () => {
  it("has units in the head and plain numbers in the cells", () => {
    expect(toCsv(rows.slice(0, 2), columns)).toBe("Name,Time (ns)\r\nMatMul_10,5\r\nMatMul_9,\r\n");
  });

  it("quotes what would break a line and disarms formulas", () => {
    const hostile = [
      { name: 'a,"b"\n', ns: 1 },
      { name: "=cmd()", ns: -1 },
    ];
    expect(toCsv(hostile, columns)).toBe('Name,Time (ns)\r\n"a,""b""\n",1\r\n\'=cmd(),-1\r\n');
  });
});

describe("the range of visible rows", () => {
  it("has a few more rows than the window", () => {
    expect(visibleRange(2800, 280, 28, 10_000)).toEqual({ first: 94, last: 116 });
  });

  it("stays within the rows", () => {
    expect(visibleRange(0, 280, 28, 3)).toEqual({ first: 0, last: 3 });
    expect(visibleRange(0, 280, 28, 0)).toEqual({ first: 0, last: 0 });
  });
});
