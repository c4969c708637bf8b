"""Partial results, computed from some of the partitions and small enough to send: sums, extremes, sketches of durations.

Each of these tables can be merged with those of other partitions without loss. Durations are counted in buckets that grow by
``GROWTH``, so percentiles computed from them have an error of at most 1%.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tftracer.errors import StorageError
from tftracer.export import parquet
from tftracer.export.tables.table import Array
from tftracer.scripting.find_partitions import Partition, read_parquet
from tftracer.trace.decode.node_kinds import NO_COLLECTIVE

#: Ratio of a bucket's lower bound to the lower bound of the previous bucket.
GROWTH = 1.02
_TABLES = ("session", "runs", "steps", "traces", "slices")
#: SQL for a node's first two scopes, or its only scope: ``model/dense_1`` for ``model/dense_1/MatMul`` and for all other nodes
#: in ``model/dense_1``.
_LAYER = "array_to_string(string_split(name, '/')[:least(2, len(string_split(name, '/')) - 1)], '/')"
_SLICES = "FROM slices s JOIN named t USING (job, rank, trace_id)"

#: Table -> SQL. The temporary table ``named`` has the traces with their runs' titles; a run has the same title on all ranks.
QUERIES = {
    "clocks": """SELECT job, count(*) AS ranks, count(clock_error_ns) AS known, max(clock_error_ns) AS error_ns
        FROM session GROUP BY job""",
    "traced": """SELECT job, run, step, rank, max(length_ns) AS length_ns, max(length_ns - exposed_communication_ns) AS own_ns
        FROM named WHERE step IS NOT NULL AND length_ns IS NOT NULL AND exposed_communication_ns IS NOT NULL GROUP BY ALL""",
    "steps": """SELECT s.job, r.title AS run, s.rank, sum(s.count)::BIGINT AS steps, sum(s.count * s.mean_ns)::DOUBLE AS total_ns
        FROM steps s JOIN runs r USING (job, rank, run_id) WHERE NOT s.traced GROUP BY ALL""",
    "ops": f"""SELECT op, floor(ln(greatest(dur_ns, 1)) / ln({GROWTH}))::INTEGER AS bucket, count(*) AS executions,
        sum(dur_ns)::DOUBLE AS total_ns, max(dur_ns) AS longest_ns
        FROM slices WHERE counted AND dur_ns IS NOT NULL AND op <> '' GROUP BY ALL""",
    "collectives": f"""WITH arrivals AS (SELECT s.job, t.run, s.step, s.name, s.rank,
            min(epoch_ns(t.origin_at) + s.start_ns) AS arrived_ns {_SLICES}
            WHERE s.kind = 'communication' AND s.counted AND s.start_ns IS NOT NULL AND t.origin_at IS NOT NULL
            AND s.step IS NOT NULL AND NOT regexp_full_match(s.op, {parquet.quoted(NO_COLLECTIVE.pattern)}) GROUP BY ALL)
        SELECT job, run, step, name, count(*) AS ranks, min(arrived_ns) AS first_ns, max(arrived_ns) AS last_ns,
            arg_max(rank, arrived_ns) AS last_rank
        FROM arrivals GROUP BY ALL""",
    "layers": f"""SELECT s.job, t.run, s.step, {_LAYER.replace("name", "s.name")} AS layer, sum(s.dur_ns)::DOUBLE AS total_ns,
        count(DISTINCT s.rank) AS ranks {_SLICES}
        WHERE s.counted AND s.dur_ns IS NOT NULL AND s.step IS NOT NULL AND s.kind <> 'communication' GROUP BY ALL""",
}

Columns = dict[str, Array]
Partial = dict[str, Columns]


@dataclass
class Partials:
    """The partial results of some partitions. ``left_out``: partitions that were not used, and why."""

    partials: list[Partial] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


def partials_of(chunk: Sequence[Partition], threads: int | None = None) -> Partials:
    """Compute a chunk's partial results, here or on a worker. ``threads``: number of DuckDB's threads, by default one per core.

    If a file cannot be read, its partition is found by bisecting the chunk, and left out.
    """
    try:
        return Partials([_partial(chunk, threads)])
    except StorageError as error:
        if len(chunk) == 1:
            return Partials(left_out=[f"{chunk[0].where}: it cannot be read ({error})."])
        middle = len(chunk) // 2
        first, second = partials_of(chunk[:middle], threads), partials_of(chunk[middle:], threads)
        return Partials(first.partials + second.partials, first.left_out + second.left_out)


def _partial(chunk: Sequence[Partition], threads: int | None) -> Partial:
    connection = parquet.connect()
    try:
        if threads:
            connection.execute(f"SET threads = {threads}")
        for table in _TABLES:
            files = [file for partition in chunk for file in partition.files.get(table, ())]
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {read_parquet(files)}")
        connection.execute("""CREATE TEMP TABLE named AS SELECT t.*, r.title AS run
            FROM traces t JOIN runs r USING (job, rank, run_id)""")
        return {name: connection.execute(sql).fetchnumpy() for name, sql in QUERIES.items()}
    except Exception as error:
        raise StorageError(str(error).strip().split("\n")[0]) from error
    finally:
        connection.close()
