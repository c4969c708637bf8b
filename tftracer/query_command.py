"""``tftracer query FILE... "SQL"``: SQL over sessions or an exported folder."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tftracer.scripting.query import Result


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="tftracer query",
        description="Answers one SQL statement over the tables of sessions: session, runs, steps, traces, slices, ops, tensors, "
        "transfers, findings, sentences, stalls. Needs DuckDB: pip install tftracer[tables].",
    )
    made.add_argument(
        "files", nargs="+", metavar="FILE", help="any file that tftracer opens, a live page's URL, or an exported folder"
    )
    made.add_argument("sql", metavar="SQL", help='such as "SELECT op, sum(total_ns) FROM ops GROUP BY op"')
    made.add_argument("--job", help="the files are of the processes of one job: align their clocks, and name it so")
    shown = made.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="a JSON list of rows")
    shown.add_argument("--csv", action="store_true", help="CSV with a line of names")
    return made


def main(arguments: Sequence[str], say: Callable[[str], None]) -> int:
    from tftracer.scripting.query import query

    options = parser().parse_intermixed_args(list(arguments))
    result = query(options.files, options.sql, options.job)
    say(as_json(result) if options.json else as_csv(result) if options.csv else as_text(result))
    return 0


def as_json(result: Result) -> str:
    return json.dumps([dict(zip(result.columns, row)) for row in result.rows], default=str, indent=1)


def as_csv(result: Result) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(result.columns)
    writer.writerows(result.rows)
    return text.getvalue().rstrip("\n")


def as_text(result: Result) -> str:
    """Columns side by side, numbers to the right; "-" for what is not known."""
    rows = [[_cell(value) for value in row] for row in result.rows]
    numeric = [all(isinstance(row[i], (int, float, type(None))) for row in result.rows) for i in range(len(result.columns))]
    widths = [max(map(len, column)) for column in zip(result.columns, *rows)]
    return "\n".join(_line(row, widths, numeric) for row in [result.columns, *rows])


def _line(row: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    cells = (cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(row, widths, numeric))
    return "  ".join(cells).rstrip()


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e6 else f"{value:,.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "".join(character if character.isprintable() else "�" for character in str(value))
