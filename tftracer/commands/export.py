"""``tftracer export FILE... --parquet DIR``: sessions as Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tftracer.subcommand_parser import Parser
from tftracer.terminal import progress

SUMMARY = "exports sessions as Parquet files"


def parser() -> Parser:
    syntax = Parser(
        "tftracer export",
        description="Writes sessions as tables, DIR/TABLE/job=J/rank=RRRR/part-N.parquet. Needs DuckDB: pip install "
        "tftracer[tables].",
    )
    syntax.add_argument("files", nargs="+", metavar="FILE", help="any file that tftracer opens, or the URL of a live page")
    syntax.add_argument(
        "--parquet", required=True, metavar="DIR", help="a folder, or a URL such as s3://bucket/folder (needs fsspec)"
    )
    syntax.add_argument(
        "--job", help="name of the job whose processes recorded the files: their clocks are aligned (default: each file is a job)"
    )
    return syntax


def main(arguments: Sequence[str], say: Callable[[str], None]) -> int:
    from tftracer.scripting.export import export

    options = parser().parse_intermixed_args(arguments)
    with progress(f"Exporting {options.files[0] if len(options.files) == 1 else f'{len(options.files)} files'}"):
        manifests = export(options.files, options.parquet, options.job)
    for manifest in manifests:
        parts = [part for table in manifest["tables"].values() for part in table]
        rows, size = sum(part["rows"] for part in parts), sum(part["bytes"] for part in parts)
        say(f"job={manifest['job']} rank={manifest['rank']:04d}: {rows:,} rows in {len(parts)} files, {size / 1e6:,.2f} MB")
    return 0
