"""``tftracer query FILE... "SQL"``: SQL over sessions or an exported folder."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import sys
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from tftracer.display.escaped_lines import shown_plainly
from tftracer.errors import StorageError
from tftracer.subcommand_parser import Parser
from tftracer.terminal import Say, progress

if TYPE_CHECKING:
    from tftracer.scripting.query import Result


SUMMARY = "runs SQL over sessions"


def parser() -> Parser:
    from tftracer.export.tables.schema import TABLES

    syntax = Parser(
        "tftracer query",
        usage="tftracer query [options] FILE... SQL",
        description=f"Answers SQL over the tables of sessions: {', '.join(TABLES)}. Needs DuckDB: pip install tftracer[tables].",
        epilog='SQL: such as "SELECT op, sum(total_ns) FROM ops GROUP BY op"; several statements are separated by ";", and '
        '"-" reads them from standard input.',
    )
    syntax.add_argument(
        "files", nargs="+", metavar="FILE", help="any file that tftracer opens, a live page's URL, or an exported folder"
    )
    syntax.add_argument("-f", "--file", metavar="SQL_FILE", help="a file with the SQL; then the SQL is not an argument")
    syntax.add_argument(
        "--external",
        action="store_true",
        help="the SQL may use other files, the network and DuckDB's extensions, and write files",
    )
    syntax.add_argument("--job", help="name of the job whose processes recorded the files: their clocks are aligned")
    group = syntax.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true", help="print a JSON list of rows; for several answers, a list of such lists")
    group.add_argument("--csv", action="store_true", help="print CSV with a line of column names")
    return syntax


def main(arguments: Sequence[str], say: Say) -> int:
    from tftracer.scripting.query import answers

    syntax = parser()
    options = syntax.parse_intermixed_args(arguments)
    files = list(options.files)
    if options.file is None and len(files) < 2:
        syntax.error("give the sessions, and SQL after them")
    sql = files.pop() if options.file is None else "-" if options.file == "-" else _read(options.file)
    statements = _read(sys.stdin.fileno()) if sql == "-" else sql
    with progress(f"Reading {files[0] if len(files) == 1 else f'{len(files)} files'}"):
        results = answers(files, statements, options.job, options.external)
    if options.json:
        say(as_json(results))
    else:
        is_for_program = options.csv and not sys.stdout.isatty()  # CSV for a program is not escaped
        say("\n\n".join(map(as_csv if options.csv else as_text, results)), is_safe=is_for_program)
    return 0


def _read(file: str | int) -> str:
    try:
        with open(file, encoding="utf-8", closefd=not isinstance(file, int)) as stream:
            return stream.read()
    except (OSError, UnicodeError) as error:
        name = "standard input" if isinstance(file, int) else file
        raise StorageError(f"{name}: no SQL can be read from it ({error}).") from error


def as_json(results: Sequence[Result]) -> str:
    """Format results as JSON (RFC 8259).

    NaN and infinity become null; times, dates and UUIDs text as in SQL; bytes hexadecimal.
    """
    lists = [[dict(zip(_distinct(result.columns), map(_json_value, row))) for row in result.rows] for result in results]
    return json.dumps(lists[0] if len(lists) == 1 else lists, indent=1, allow_nan=False)


def _distinct(names: Sequence[str]) -> list[str]:
    """Make column names distinct: ``SELECT a, a`` gives ``a`` and ``a_1``."""
    distinct: list[str] = []
    for name in names:
        free = (
            candidate for number in itertools.count() if (candidate := f"{name}_{number}" if number else name) not in distinct
        )
        distinct.append(next(free))
    return distinct


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return _json_value(float(value))
    if isinstance(value, dict):
        return {str(key): _json_value(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(inner) for inner in value]
    return value.hex() if isinstance(value, bytes) else str(value)


def as_csv(result: Result) -> str:
    text = io.StringIO()
    writer, quote_all = (csv.writer(text, lineterminator="\n", quoting=kind) for kind in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    for row in (result.columns, *result.rows):
        has_cr = any("\r" in value for value in row if isinstance(value, str))  # Python up to 3.12 does not quote such values
        (quote_all if has_cr else writer).writerow(row)
    return text.getvalue().rstrip("\n")


def as_text(result: Result) -> str:
    """Format a table. Columns of numbers are aligned to the right; unknown values are "-"."""
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
    return shown_plainly(str(value))
