"""A table's rows and columns, and what other libraries read of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas
import polars
import pyarrow
import pytest

import tftracer
from tftracer.errors import UnknownError
from tftracer.export.tables.schema import TABLES
from tftracer.export.tables.table import Part, Table

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data"
FILES = ["versions/2-saved.tftrace", "gpu_timeline_tf1.json", "xspace/gpu_v100_excerpt.xplane.pb.gz", "ps_worker0_tf2.21_cpu.pb"]


@pytest.fixture(params=FILES)
def session(request: pytest.FixtureRequest) -> Any:
    with tftracer.open(DATA / request.param) as opened:
        yield opened


def steps_table(count: list[int], mean_ns: list[int]) -> Table:
    rows = len(count)
    columns: dict[str, Any] = {name: lambda: np.ones(rows, int) for name in ("run_id", "step", "min_ns", "traced")}
    columns.update(start_at=lambda: np.zeros(rows, "datetime64[ns]"), count=lambda: count)
    columns.update(mean_ns=lambda: mean_ns, max_ns=lambda: mean_ns)
    return Table("steps", lambda: iter([Part(rows, columns)]))


def findings_table(text: str) -> Table:
    columns: dict[str, Any] = {name: lambda: [text] for name in ("code", "severity", "message", "remedy")}
    columns.update({name: lambda: [1] for name in ("trace_id", "run_id", "step")})
    return Table("findings", lambda: iter([Part(1, columns)]))


def test_rows_come_by_loop_by_number_and_by_slice(session: tftracer.Session) -> None:
    table = session.slices()
    rows = list(table)
    assert len(rows) == len(table) > 10
    for name in table.columns:
        assert [row[name] for row in rows] == [None if value is np.ma.masked else value for value in table[name]]
    assert (table[0], table[-1], table[np.int64(3)]) == (rows[0], rows[-1], rows[3])
    assert list(table[2:9:3]) == rows[2:9:3] and list(table[-2:]) == rows[-2:] and list(table[:0]) == []
    assert list(table[[4, 1]]) == [rows[4], rows[1]]
    for position in (len(rows), -len(rows) - 1):
        with pytest.raises(IndexError, match="rows"):
            table[position]


def test_a_mask_chooses_rows_and_what_is_not_known_is_not_chosen(session: tftracer.Session) -> None:
    table = session.slices()
    chosen = table[table["delay_ns"] >= 0]
    assert list(chosen) == [row for row in table if row["delay_ns"] is not None and row["delay_ns"] >= 0]
    assert len(chosen) == len(chosen["name"])
    assert len(table[table["thread"] == table["thread"]]) == np.ma.count(table["thread"])


def test_in_tells_whether_there_is_a_column(session: tftracer.Session) -> None:
    assert "dur_ns" in session.slices() and "colour" not in session.slices()
    with pytest.raises(UnknownError, match="dur_ns"):
        session.slices().select("name", "colour")


def test_a_table_of_grouped_steps_says_how_many_steps_there_are() -> None:
    table = steps_table([8, 2, 1, 1], [5, 6, 100, 7])
    assert repr(table).startswith("<Table steps: 4 rows of 12 steps; ")
    assert "4 rows of 12 steps" in table._repr_html_()
    assert "2 rows of 10 steps" in repr(table[:2])


def test_a_notebook_shows_the_first_rows_and_no_html_of_a_file(session: tftracer.Session) -> None:
    shown = session.slices()._repr_html_()
    assert shown.count("<tr") == 11 and f"{len(session.slices()) - 10:,} more rows" in shown
    hostile = findings_table("<script>")
    assert "<script>" not in hostile._repr_html_() and "&lt;script&gt;" in hostile._repr_html_()


def test_statistics_of_a_column_leave_out_what_is_not_known(session: tftracer.Session) -> None:
    masked = 0
    for name in TABLES:
        for column in session.table(name).select().values():
            if not isinstance(column, np.ma.MaskedArray):
                continue
            known = column.compressed()
            masked += len(column) - len(known)
            under = np.ma.getdata(column)[np.ma.getmaskarray(column)]
            assert np.isnan(under).all() if under.dtype.kind == "f" else (under == np.iinfo(under.dtype).min).all()
            if not len(known):
                continue
            for statistic in (np.median, np.mean, np.std, np.min, np.max, np.sum, np.average, np.nanmedian):
                assert statistic(column) == pytest.approx(statistic(known)), (name, statistic)
            assert np.percentile(column, 90) == np.percentile(known, 90)
            assert np.quantile(a=column, q=0.9) == np.quantile(known, 0.9)
            assert (np.unique(column) == np.unique(known)).all()
            assert np.ma.count(np.concatenate([column, column])) == 2 * len(known)
    assert masked > 0


def test_polars_pyarrow_pandas_and_duckdb_read_every_table(session: tftracer.Session) -> None:
    for name, fields in TABLES.items():
        table = session.table(name)
        read = pyarrow.table(table)
        read.validate(full=True)
        assert read.column_names == [field.name for field in fields]
        rows = [
            {name: value.astype(object) if isinstance(value, np.datetime64) else value for name, value in row.items()}
            for row in table
        ]
        times = [field.name for field in fields if field.type == "time"]
        integers = pyarrow.schema([(n, pyarrow.int64() if n in times else read.schema.field(n).type) for n in read.column_names])
        assert read.cast(integers).to_pylist() == rows
        assert polars.DataFrame(table).equals(polars.DataFrame(read))
        assert len(pandas.DataFrame.from_arrow(table)) == len(table)
        connection = duckdb.connect()
        connection.register("ours", table)
        assert connection.execute("SELECT count(*) FROM ours").fetchall() == [(len(table),)]


def test_an_empty_table_and_half_of_a_character_pair_are_arrow_too() -> None:
    assert pyarrow.table(steps_table([], [])).num_rows == 0
    assert pyarrow.table(findings_table("\ud800é"))["code"].to_pylist() == ["?é"]


END = """
import gc, resource, threading, tftracer, polars, pyarrow
session = tftracer.open({file!r})
table = session.slices()
def peak():
    gc.collect()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def read():
    table.__arrow_c_stream__()  # one that no one reads
    polars.DataFrame(table), pyarrow.table(table)["name"], pyarrow.RecordBatchReader.from_stream(table)
read(); before = peak()
for _ in range(400): read()
print((peak() - before) * 1024 < 400 * table["name"].nbytes)
kept, also = polars.DataFrame(table), pyarrow.table(table)
del table, session
"""


def test_arrow_data_is_freed_and_outlives_its_table_until_the_end_of_python() -> None:
    command, environment = [sys.executable, "-c", END.format(file=str(DATA / FILES[2]))], {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")
