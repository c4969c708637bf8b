"""Answers questions about a fleet with DuckDB: in this process, or on Dask's workers, each on its own partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tftracer.comparison.odd_ops import FLOOR_NS
from tftracer.errors import StorageError, TracerError, UnsupportedError
from tftracer.export import parquet
from tftracer.fleet.partial import GROWTH, Partial, Partials, partials_of
from tftracer.scripting.find_partitions import Partition, chunks, partitions

#: Number of rows that are read at a time; they take about 100 MB.
CHUNK_ROWS = 400_000
CONNECT_S = 30


#: Question -> SQL over the merged tables.
QUESTIONS = {
    # A rank's own time in a step is the step's length without exposed communication, in which it may wait for other ranks.
    "ranks": """WITH usual AS (SELECT job, run, step, median(own_ns) AS usual_ns FROM traced GROUP BY ALL HAVING count(*) > 1),
        own AS (SELECT job, rank, count(*) AS traced_steps, median(own_ns / usual_ns) AS ratio, avg(own_ns) AS own_ns
            FROM traced JOIN usual USING (job, run, step) WHERE usual_ns > 0 GROUP BY ALL),
        plain AS (SELECT job, rank, sum(steps) AS steps, sum(total_ns) / sum(steps) AS step_ns
            FROM steps SEMI JOIN traced USING (job, run)
            GROUP BY ALL)
        SELECT job, rank, ratio, own_ns, traced_steps, step_ns FROM own LEFT JOIN plain USING (job, rank)
        ORDER BY ratio DESC, job, rank LIMIT {limit}""",
    "collectives": """WITH shared AS (SELECT job, run, step, name, sum(ranks) AS ranks, max(last_ns) - min(first_ns) AS spread_ns,
            arg_max(last_rank, last_ns) AS last_rank FROM collectives GROUP BY ALL HAVING sum(ranks) > 1),
        means AS (SELECT job, name, count(*) AS times, avg(spread_ns) AS spread_ns FROM shared GROUP BY ALL),
        last_ranks AS (SELECT job, name, last_rank, count(*) AS times_last FROM shared GROUP BY job, name, last_rank),
        usually_last AS (SELECT * FROM last_ranks
            QUALIFY row_number() OVER (PARTITION BY job, name ORDER BY times_last DESC, last_rank) = 1)
        SELECT job, name, spread_ns, last_rank, times_last, times FROM means JOIN usually_last USING (job, name)
        ORDER BY spread_ns DESC, job, name LIMIT {limit}""",
    # The traced steps in two halves: a layer's mean time per rank and step in the first and in the second half.
    "layers": """WITH halves AS (SELECT job, run, step, ntile(2) OVER (PARTITION BY job, run ORDER BY step) AS half
            FROM (SELECT DISTINCT job, run, step FROM layers)),
        times AS (SELECT job, layer, half, sum(total_ns) / sum(ranks) AS ns FROM layers JOIN halves USING (job, run, step)
            WHERE layer <> '' GROUP BY ALL),
        paired AS (SELECT a.job, a.layer, a.ns AS first_ns, b.ns AS second_ns FROM times a JOIN times b USING (job, layer)
            WHERE a.half = 1 AND b.half = 2)
        SELECT job, layer, first_ns, second_ns, second_ns - first_ns AS growth_ns FROM paired
        WHERE second_ns - first_ns > greatest({floor}, {share} * second_ns) ORDER BY growth_ns DESC, job, layer LIMIT {limit}""",
    "clocks": """SELECT job, sum(ranks)::BIGINT AS ranks, sum(known)::BIGINT AS known, max(error_ns) AS error_ns
        FROM clocks GROUP BY job ORDER BY job""",
}
PERCENTILES = (0.5, 0.99)
MIN_SHARE = 0.1  # minimum growth of a listed layer, as a share of its later time


@dataclass(frozen=True)
class Fleet:
    """The rows of each answer as dicts, the worst first; ``clocks`` is sorted by job. Times are in ns."""

    ranks: list[dict[str, Any]]  # the slowest first, by the median ratio of a rank's own time to that of the median rank
    ops: list[dict[str, Any]]
    collectives: list[dict[str, Any]]
    layers: list[dict[str, Any]]
    clocks: list[dict[str, Any]]  # for each job, how well the clocks of its ranks agree
    partitions: int
    jobs: int
    left_out: list[str]  # partitions that were not used, and why


def merged(partials: Iterable[Partial], partitions: int, left_out: Sequence[str], limit: int = 10) -> Fleet:
    """Merge partial results and answer the questions. ``limit``: rows of each answer."""
    connection = parquet.connect()
    try:
        for number, part in enumerate(partials):
            for name, columns in part.items():
                registered: Any = columns
                connection.register("part", registered)
                connection.execute(f"CREATE TABLE {name} AS FROM part" if not number else f"INSERT INTO {name} FROM part")
                connection.unregister("part")
        queries = {name: sql.format(limit=limit, floor=FLOOR_NS, share=MIN_SHARE) for name, sql in QUESTIONS.items()}
        answers = {name: _rows(connection, sql) for name, sql in queries.items()}
        ops = _ops(connection, limit)
    finally:
        connection.close()
    return Fleet(ops=ops, partitions=partitions, jobs=len(answers["clocks"]), left_out=list(left_out), **answers)


def _rows(connection: Any, sql: str) -> list[dict[str, Any]]:
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row)) for row in cursor.fetchall()]


def _ops(connection: Any, limit: int) -> list[dict[str, Any]]:
    totals = _rows(
        connection,
        f"""SELECT op, sum(executions)::BIGINT AS executions, sum(total_ns) AS total_ns, max(longest_ns) AS longest_ns
        FROM ops GROUP BY op ORDER BY total_ns DESC, op LIMIT {limit}""",
    )
    for row in totals:
        sketch = connection.execute(
            "SELECT bucket, sum(executions)::BIGINT AS executions FROM ops WHERE op = ? GROUP BY bucket ORDER BY bucket",
            [row["op"]],
        ).fetchnumpy()
        for share in PERCENTILES:
            row[f"p{share * 100:.0f}_ns"] = min(percentile(sketch["bucket"], sketch["executions"], share), row["longest_ns"])
    return totals


def percentile(buckets: Any, counts: Any, share: float) -> float:
    """Return a percentile of a sketch: the middle of the bucket in which the share is reached. ``buckets`` must be sorted."""
    reached = np.searchsorted(np.cumsum(counts), share * counts.sum())
    return float(GROWTH ** (buckets[min(int(reached), len(buckets) - 1)] + 0.5))


def ask(folder: str, scheduler: str = "", limit: int = 10, chunk_rows: int = CHUNK_ROWS) -> Fleet:
    """Answer the questions about an exported folder.

    ``scheduler``: the address of a Dask scheduler whose workers have the folder under the same path. If a worker is lost, other
    workers repeat its part. Raises ``StorageError`` if the folder cannot be read or the scheduler cannot be reached,
    ``UnsupportedError`` if a package is missing.
    """
    exported = partitions(Path(folder))
    pieces = chunks(exported.whole, chunk_rows)
    results = list(_on_workers(scheduler, pieces) if scheduler else map(partials_of, pieces))
    partials = [part for result in results for part in result.partials]
    unreadable = [text for result in results for text in result.left_out]
    if not partials:
        raise StorageError(f"{folder}: no partition can be read. {unreadable[0]}")
    return merged(partials, len(exported.whole) - len(unreadable), [*exported.left_out, *unreadable], limit)


def _on_workers(scheduler: str, pieces: Sequence[Sequence[Partition]]) -> Iterable[Partials]:
    try:
        from distributed import Client
    except ImportError:
        raise UnsupportedError(
            "--scheduler needs Dask's distributed, which is not installed: pip install tftracer[fleet]"
        ) from None
    try:
        client = Client(scheduler, timeout=CONNECT_S)
    except (OSError, ValueError) as error:
        raise StorageError(f"{scheduler}: no Dask scheduler can be reached there ({error}).") from error
    with client:
        futures = client.map(partials_of, pieces, threads=1, pure=False)
        return _gathered(client, futures)


def _gathered(client: Any, futures: Sequence[Any]) -> list[Partials]:
    try:
        return list(client.gather(futures))
    except TracerError:
        raise
    except Exception as error:
        raise StorageError(
            f"The workers did not answer: {error}. Each worker needs tftracer[fleet] and the folder under the same path."
        ) from error
