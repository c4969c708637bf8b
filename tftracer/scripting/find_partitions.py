"""Finds the complete partitions of an exported folder, and their files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tftracer.errors import StorageError, UnsupportedError
from tftracer.export.parquet import quoted
from tftracer.export.tables.schema import SCHEMA_VERSION
from tftracer.scripting.write_partition import MANIFESTS, is_part
from tftracer.storage.plain_files import read_plain


@dataclass(frozen=True)
class Partition:
    """The files of one rank. ``where``: ``job=J/rank=RRRR``. ``files``: table -> absolute paths."""

    where: str
    job: str
    rank: int
    files: dict[str, list[str]]
    rows: int


@dataclass(frozen=True)
class Partitions:
    """The partitions of a folder. ``whole``: the complete ones. ``left_out``: those that are not used, and why."""

    whole: list[Partition]
    left_out: list[str]


def partitions(folder: Path) -> Partitions:
    """Find the partitions of a folder. Raises ``StorageError`` if there are none."""
    whole, left_out = [], []
    folder = folder.absolute()  # Dask workers have other working folders
    for manifest in sorted(folder.glob(f"{MANIFESTS}/job=*/rank=*/manifest.json")):
        where = "/".join(manifest.parts[-3:-1])
        try:
            whole.append(_partition(folder, where, json.loads(read_plain(manifest))))
        except UnsupportedError as error:
            left_out.append(f"{where}: {error}")
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            left_out.append(f"{where}: its manifest cannot be read ({type(error).__name__}).")
    left_out += [f"{where}: it has no manifest: its export did not finish." for where in sorted(_unfinished(folder))]
    if not whole:
        why = f" {left_out[0]}" if left_out else " Make one: tftracer export FILE... --parquet DIR."
        raise StorageError(f"{folder} holds no exported session.{why}")
    return Partitions(whole, left_out)


def _unfinished(folder: Path) -> set[str]:
    with_files = {"/".join(path.parts[-2:]) for path in folder.glob("session/job=*/rank=*")}
    return with_files - {"/".join(path.parts[-2:]) for path in folder.glob(f"{MANIFESTS}/job=*/rank=*") if any(path.iterdir())}


def _partition(folder: Path, where: str, manifest: dict[str, Any]) -> Partition:
    if manifest["schema"] != SCHEMA_VERSION:
        raise UnsupportedError(f"its tables have version {manifest['schema']!r}, this tftracer reads {SCHEMA_VERSION}.")
    files: dict[str, list[str]] = {}
    rows = 0
    job, rank = str(manifest["job"]), int(str(manifest["rank"]))
    for table, parts in manifest["tables"].items():
        for part in parts:
            if not is_part(str(part["path"]), where):
                raise UnsupportedError("its manifest names files of other partitions.")
            _check_file(folder / part["path"], part)
            files.setdefault(table, []).append(str(folder / part["path"]))
            rows += int(part["rows"])
    return Partition(where, job, rank, files, rows)


def _check_file(file: Path, part: dict[str, object]) -> None:
    name = f"{file.parts[-4]}/.../{file.name}"
    try:
        size = file.stat().st_size
    except FileNotFoundError:
        raise UnsupportedError(f"its file {name} is missing.") from None
    if size != part.get("bytes", size):
        raise UnsupportedError(f"its file {name} has {size:,} bytes, but {part['bytes']:,} were written.")


def read_parquet(files: Sequence[str]) -> str:
    """Return the SQL expression that reads these files."""
    listed = ", ".join(map(quoted, files))
    options = "hive_partitioning = true, hive_types = {job: VARCHAR, rank: BIGINT}, union_by_name = true"
    return f"read_parquet([{listed}], {options})"


def chunks(whole: Sequence[Partition], rows: int) -> list[list[Partition]]:
    """Split the partitions, in order, into groups of about ``rows`` rows. A partition is never split."""
    groups: list[list[Partition]] = []
    filled = rows
    for each in whole:
        if filled >= rows:
            groups.append([])
            filled = 0
        groups[-1].append(each)
        filled += each.rows
    return groups
