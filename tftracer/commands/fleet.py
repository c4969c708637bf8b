"""``tftracer fleet DIR``: answers questions about exported sessions of many ranks and jobs."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence

from tftracer.subcommand_parser import Parser
from tftracer.terminal import progress

SUMMARY = "compares exported sessions of many ranks and jobs"


def parser() -> Parser:
    syntax = Parser(
        "tftracer fleet",
        description="Answers questions about all jobs in a folder that tftracer export wrote: slowest ranks, op statistics, "
        "collectives whose ranks arrive far apart, layers that became slower. Needs DuckDB: pip install tftracer[tables]; for "
        "--scheduler: tftracer[fleet].",
    )
    syntax.add_argument("folder", metavar="DIR", help="folder that tftracer export --parquet wrote")
    syntax.add_argument(
        "--scheduler", default="", metavar="tcp://HOST:PORT", help="a Dask scheduler whose workers have DIR under the same path"
    )
    syntax.add_argument("--top", type=int, default=10, metavar="N", help="rows of each answer (default: 10)")
    syntax.add_argument("--json", action="store_true", help="print JSON, times in ns")
    return syntax


def main(arguments: Sequence[str], say: Callable[[str], None]) -> int:
    from tftracer.fleet.ask import ask
    from tftracer.fleet.text import as_text

    options = parser().parse_args(arguments)
    with progress(f"Reading {options.folder}"):
        fleet = ask(options.folder, options.scheduler, max(1, options.top))
    say(json.dumps(dataclasses.asdict(fleet), indent=1) if options.json else as_text(fleet))
    return 0
