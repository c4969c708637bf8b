"""The exported partitions of a job of many ranks: real Horovod traces, with times that differ by rank and step as a job's do.

Rank ``ranks // 3`` takes ``SLOW`` times as long for all that it computes, and arrives last. One layer grows by ``GROWN_NS`` from
step to step.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import tftracer
from tftracer.export import parquet
from tftracer.export.tables.schema import SCHEMA_VERSION, TABLES

DATA = Path(__file__).parent / "data"
SLOW = 1.5
GROWN_NS = 200_000
WRITTEN = ("session", "runs", "steps", "traces", "slices")


def make_fleet(folder: Path, job: str, ranks: int, steps: int, rows_of_steps: int = 100) -> dict[str, Any]:
    """Returns what the answers are to be: the slow rank, the collectives, the layer that grows, executions of each op."""
    bases = [tftracer.open(DATA / f"horovod_rank{rank}_tf2.15_cpu.pb") for rank in (0, 1)]
    tables = [{name: base.table(name).select() for name in WRITTEN} for base in bases]
    grown = layer_of(tables[0]["slices"]["name"])
    connection = parquet.connect()
    for rank in range(ranks):
        made = _of_rank(tables[rank % 2], rank, ranks // 3 == rank, steps, rows_of_steps, grown)
        _write(connection, folder, job, rank, made)
    connection.close()
    counted = dict.fromkeys(tables[0]["slices"]["op"], 0)
    for rank in range(ranks):
        slices = tables[rank % 2]["slices"]
        for op in slices["op"][slices["counted"] & ~np.ma.getmaskarray(slices["dur_ns"])]:
            counted[op] = counted.get(op, 0) + steps
    return {"slow": ranks // 3, "layer": grown, "executions": counted}


def layer_of(names: Any) -> str:
    """One with few nodes, of two parts or more."""
    layers = ["/".join(name.split("/")[:2]) for name in names if name.count("/") > 1 and "orovod" not in name]
    return min(sorted(set(layers)), key=layers.count)


def _of_rank(base: Any, rank: int, is_slow: bool, steps: int, rows_of_steps: int, grown: str) -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(rank)
    slices, traces, n = base["slices"], base["traces"], len(base["slices"]["name"])
    factor = (SLOW if is_slow else 1.0) * rng.normal(1, 0.01, (steps, n)).clip(0.9, 1.1)
    communicates = slices["kind"] == "communication"
    in_layer = np.array([name.startswith(grown + "/") for name in slices["name"]])
    first = int(np.flatnonzero(in_layer)[0])
    lengths = np.where(communicates, slices["dur_ns"], slices["dur_ns"] * factor).astype(np.int64)
    lengths[:, first] += np.arange(steps) * GROWN_NS
    starts = (slices["start_ns"] * (SLOW if is_slow else 1.0) + rng.normal(0, 1000, (steps, n)).clip(-5000, 5000)).astype(
        np.int64
    )
    tiled = {name: _tiled(column, steps) for name, column in slices.items()}
    step = np.repeat(np.arange(1, steps + 1) * 100, n)
    tiled |= {"step": step, "trace_id": step // 100, "run_id": np.ones(steps * n, np.int64)}
    tiled |= {"dur_ns": lengths.reshape(-1), "start_ns": np.maximum(starts, 0).reshape(-1)}
    return {
        "session": base["session"] | {"clock_error_ns": np.ma.masked_array([2_000], [rank == 0])},
        "runs": base["runs"] | {"run_id": np.array([1])},
        "steps": _steps(rows_of_steps, is_slow, rng),
        "traces": _traces(traces, steps, is_slow, rng),
        "slices": tiled,
    }


def _tiled(column: Any, steps: int) -> Any:
    return np.ma.concatenate([column] * steps) if isinstance(column, np.ma.MaskedArray) else np.tile(column, steps)


def _steps(rows: int, is_slow: bool, rng: Any) -> dict[str, Any]:
    length = (10_000_000 * rng.lognormal(0.05 if is_slow else 0.0, 0.05, rows)).astype(np.int64)
    number = np.arange(1, rows + 1)
    begin = np.datetime64("2026-01-01", "ns") + number * np.timedelta64(10, "ms")
    one = np.ones(rows, np.int64)
    return {"run_id": one, "step": number, "count": one, "start_at": begin, "mean_ns": length, "min_ns": length, "max_ns": length,
            "traced": number % 100 == 0}  # fmt: skip


def _traces(base: Any, steps: int, is_slow: bool, rng: Any) -> dict[str, Any]:
    made = {name: _tiled(column, steps) for name, column in base.items()}
    own = (8_000_000 * (SLOW if is_slow else 1.0) * rng.normal(1, 0.01, steps)).astype(np.int64)
    length = np.full(steps, int(8_000_000 * SLOW * 1.1))
    step = np.arange(1, steps + 1) * 100
    origin = np.datetime64("2026-01-01", "ns") + step * np.timedelta64(10, "ms")
    return made | {"step": step, "trace_id": step // 100, "run_id": np.ones(steps, np.int64), "length_ns": length,
                   "exposed_communication_ns": length - own, "origin_at": origin}  # fmt: skip


def _write(connection: Any, folder: Path, job: str, rank: int, made: dict[str, dict[str, Any]]) -> None:
    listed = {}
    for table, columns in made.items():
        path = f"{table}/job={job}/rank={rank:04d}/part-0.parquet"
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        ordered = {field.name: columns[field.name] for field in TABLES[table]}
        parquet.write(connection, table, ordered, folder / path)
        listed[table] = [{"path": path, "rows": len(next(iter(ordered.values()))), "bytes": (folder / path).stat().st_size}]
    manifest = folder / f"manifests/job={job}/rank={rank:04d}/manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"schema": SCHEMA_VERSION, "job": job, "rank": rank, "tables": listed}))
