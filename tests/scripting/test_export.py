"""Exported tables: read back by DuckDB, Polars and pandas, they hold what the session answers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import pandas
import polars
import pyarrow.parquet
import pytest
from local_jobs import Jobs, jobs
from made_stalls import record_slow_steps
from recording import RAW, recording, steps

import tftracer
from tftracer.errors import StorageError, UnsupportedError
from tftracer.export.tables.schema import SCHEMA_VERSION, TABLES
from tftracer.scripting import write_partition
from tftracer.scripting.export import export
from tftracer.scripting.query import query
from tftracer.scripting.session import Session
from tftracer.trace.decode.descriptors import message_class

__all__ = ["jobs"]  # a fixture

DATA = Path(__file__).parents[1] / "data"
FILES = [
    "ps_worker0_tf2.21_cpu.pb",
    "horovod_rank0_tf2.15_cpu.pb",
    "gpu_timeline_tf1.json",
    "foreign/events.out.tfevents.small",
    "legacy/session.pickle",
    "legacy/run_metadata_python2.pickle",
    "versions/2-spool.tftrace",
    "versions/2-saved.tftrace",
    "xspace/convnet_tf2.15.xplane.pb",
    "xspace/gpu_mi300_excerpt.xplane.pb.gz",
]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    export([str(DATA / file) for file in FILES], str(folder))
    return folder


@pytest.fixture(scope="module")
def sessions() -> dict[str, Session]:
    """By the names of their jobs."""
    stems = [name.split("/")[-1] for name in FILES]
    for suffix in (".gz", ".pb", ".xplane", ".json", ".pickle", ".tftrace"):
        stems = [stem.removesuffix(suffix) for stem in stems]
    return {stem: tftracer.open(DATA / file) for stem, file in zip(stems, FILES)}


def whole(column: Any) -> list[Any]:
    """Values to compare: nanoseconds of times, None where not known."""
    if column.dtype.kind == "M":
        return [None if np.isnat(value) else int(value.astype(np.int64)) for value in column]
    return list(column.tolist())


@pytest.mark.parametrize("table", TABLES)
def test_duckdb_reads_what_the_session_answers(exported: Path, sessions: dict[str, Session], table: str) -> None:
    times = {field.name for field in TABLES[table] if field.type == "time"}
    chosen = ", ".join(f"epoch_ns({f.name})" if f.name in times else f.name for f in TABLES[table])
    rows = 0
    for job, session in sessions.items():
        file = exported / table / f"job={job}" / "rank=0000" / "part-0.parquet"
        exported_rows = duckdb.connect().execute(f"SELECT {chosen} FROM read_parquet('{file}')").fetchall()
        expected = session.table(table).select()
        columns = list(zip(*exported_rows)) if exported_rows else [()] * len(expected)
        for (name, column), values in zip(expected.items(), columns):
            assert list(values) == whole(column), (job, name)
        rows += len(exported_rows)
    assert rows > 0 or table in ("stalls", "ledger", "input_stages", "memory_growth")  # no old file has any


def test_counts_and_sums_come_back(exported: Path, sessions: dict[str, Session]) -> None:
    slices = f"read_parquet('{exported}/slices/*/*/*.parquet', hive_partitioning = true)"
    totals = duckdb.connect().execute(f"SELECT job, count(*), sum(dur_ns), sum(self_ns) FROM {slices} GROUP BY job").fetchall()
    expected = {}
    for job, session in sessions.items():
        table = session.slices()
        expected[job] = (len(table), int(table["dur_ns"].sum()), float(table["self_ns"].sum()))
    assert len(totals) == len(expected) == len(FILES)
    for job, count, total, own in totals:
        assert (count, total) == expected[job][:2] and own == pytest.approx(expected[job][2])
        ops = sessions[job].ops("name")
        assert ops["total_ns"].sum() == sessions[job].ops("type")["total_ns"].sum()


def test_polars_reads_them(exported: Path, sessions: dict[str, Session]) -> None:
    frame = polars.read_parquet(f"{exported}/slices/**/*.parquet", hive_partitioning=True)
    assert frame.height == sum(len(session.slices()) for session in sessions.values())
    total = frame.filter(polars.col("job") == "gpu_timeline_tf1").select(polars.col("dur_ns").sum()).item()
    assert total == sessions["gpu_timeline_tf1"].slices()["dur_ns"].sum()
    assert frame.schema["start_ns"] == polars.Int64
    steps = polars.read_parquet(f"{exported}/steps/**/*.parquet")
    assert steps.schema["start_at"] == polars.Datetime("ns", time_zone=None)


def test_pandas_reads_them(exported: Path, sessions: dict[str, Session]) -> None:
    frame = pandas.read_parquet(exported / "ops")
    for job, session in sessions.items():
        assert frame[frame["job"] == job]["count"].sum() == session.ops("name")["count"].sum()
    traces = pandas.read_parquet(exported / "traces")
    assert str(traces["origin_at"].dtype) == "datetime64[ns]"


def test_files_are_dictionary_coded_and_carry_the_schema_s_version(exported: Path) -> None:
    file = pyarrow.parquet.ParquetFile(exported / "slices/job=ps_worker0_tf2.21_cpu/rank=0000/part-0.parquet")
    metadata = {key.decode(): value.decode() for key, value in file.metadata.metadata.items()}
    assert metadata["tftracer_schema"] == str(SCHEMA_VERSION) and metadata["tftracer_table"] == "slices"
    group = file.metadata.row_group(0)
    coded = {group.column(i).path_in_schema: group.column(i).has_dictionary_page for i in range(group.num_columns)}
    assert coded["device"] and coded["op"] and coded["kind"]


def test_the_manifest_lists_every_file(exported: Path) -> None:
    listed = {}
    for path in exported.glob("manifests/*/*/manifest.json"):
        manifest = json.loads(path.read_text())
        assert manifest["schema"] == SCHEMA_VERSION and set(manifest["tables"]) == set(TABLES)
        listed.update({part["path"]: part for parts in manifest["tables"].values() for part in parts})
    there = {str(path.relative_to(exported)): path for path in exported.rglob("*") if path.is_file() and path.suffix != ".json"}
    assert set(listed) == set(there)
    for name, part in listed.items():
        assert part["bytes"] == there[name].stat().st_size
        assert part["rows"] == pyarrow.parquet.read_metadata(there[name]).num_rows


def test_a_job_s_ranks_are_partitions_on_one_clock(jobs: Jobs, tmp_path: Path) -> None:
    first, _ = jobs.start(2)
    first.summed_up(first.trace()["id"])
    file = tmp_path / "job.tftrace"
    file.write_bytes(first.ask("api/job/file"))
    (one, two) = export([str(file)], str(tmp_path / "out"))
    assert (one["rank"], two["rank"], one["title"], two["title"]) == (0, 1, "rank 0", "rank 1")
    assert one["job"] == two["job"] == first.job()["name"]
    joined = "slices JOIN traces USING (job, rank, trace_id)"
    sql = f"SELECT rank, min(epoch_ns(origin_at) + start_ns) FROM {joined} GROUP BY rank ORDER BY rank"
    answered = query([str(tmp_path / "out")], sql).rows
    with tftracer.open(file) as session:
        origins = [int(process.traces()["origin_at"][0].astype(np.int64)) for process in session.processes]
        expected = [origin + int(p.slices()["start_ns"].min()) for origin, p in zip(origins, session.processes)]
    assert answered == list(enumerate(expected))


def ahead(raw: bytes, shift_ns: int) -> bytes:
    """A trace as a clock that is so far ahead would have timed it."""
    metadata = message_class("RunMetadata").FromString(raw)
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            node.all_start_micros += shift_ns // 1000
            node.all_start_nanos += shift_ns
    return bytes(metadata.SerializeToString())


def test_files_of_several_ranks_are_aligned_as_one_job(tmp_path: Path) -> None:
    """One rank's clock is 50 ms ahead: in the tables it is not."""

    def tables(shift_ns: int) -> tuple[int, int]:
        """The other rank's clock, and where its trace begins."""
        folder = tmp_path / str(shift_ns)
        files = []
        for rank in (0, 1):
            raw = (DATA / f"horovod_rank{rank}_tf2.15_cpu.pb").read_bytes()
            with recording(folder / f"spool{rank}") as recorder:
                steps(recorder, 3, traced={2: ahead(raw, shift_ns) if rank else raw})
                files.append(str(folder / f"rank{rank}.tftrace"))
                recorder.save(files[-1])
        one, two = export(files, str(folder / "out"), "mine")
        assert (one["job"], one["rank"], two["rank"]) == ("mine", 0, 1)
        sql = "SELECT clock_offset_ns, epoch_ns(origin_at) FROM {}session{} JOIN {}traces{} USING (rank) WHERE rank = 1"
        hive = (f"read_parquet('{folder}/out/", "/*/*/*.parquet', hive_partitioning = true) AS ")
        sql = sql.format(hive[0], f"{hive[1]}s", hive[0], f"{hive[1]}t")
        ((offset, origin),) = duckdb.connect().execute(sql).fetchall()
        return offset, origin

    shift = 50_000_000
    (offset, origin), (shifted_offset, shifted_origin) = tables(0), tables(shift)
    assert abs(shifted_offset - offset - shift) < 1000
    assert abs(shifted_origin - origin) < 1000


def test_stalls_are_exported(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        record_slow_steps(recorder)
        recorder.save(str(tmp_path / "slow.tftrace"))
    export([str(tmp_path / "slow.tftrace")], str(tmp_path / "out"))
    answered = query([str(tmp_path / "out")], "SELECT step, cause, every FROM stalls ORDER BY step").rows
    with tftracer.open(tmp_path / "slow.tftrace") as session:
        columns = session.stalls().select("step", "cause", "every")
    assert answered == list(zip(*(whole(column) for column in columns.values()))) and len(answered) == 4


def test_rows_are_split_into_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_partition, "PART_ROWS", 20)
    (manifest,) = export([str(DATA / "versions/2-saved.tftrace")], str(tmp_path))
    assert len(manifest["tables"]["slices"]) == 2
    total = duckdb.connect().execute(f"SELECT count(*) FROM read_parquet('{tmp_path}/slices/*/*/*.parquet')").fetchone()
    assert total == (sum(part["rows"] for part in manifest["tables"]["slices"]),)
    monkeypatch.setattr(write_partition, "PART_ROWS", 1 << 20)
    (again,) = export([str(DATA / "versions/2-saved.tftrace")], str(tmp_path))
    assert len(again["tables"]["slices"]) == 1
    assert duckdb.connect().execute(f"SELECT count(*) FROM read_parquet('{tmp_path}/slices/*/*/*.parquet')").fetchone() == total


def test_another_session_of_the_same_name_is_not_overwritten(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with recording(tmp_path / name) as recorder:
            steps(recorder, 2, traced={2: RAW})
            recorder.save(str(tmp_path / name / "session.tftrace"))
    files = [str(tmp_path / name / "session.tftrace") for name in ("a", "b")]
    out = tmp_path / "out"
    export(files[:1], str(out))
    before = {path: path.read_bytes() for path in out.rglob("*.*")}
    with pytest.raises(StorageError, match="--job NAME"):
        export(files[1:], str(out))
    assert {path: path.read_bytes() for path in out.rglob("*.*")} == before
    assert [manifest["job"] for manifest in export(files, str(tmp_path / "both"))] == ["session", "session-2"]


def test_a_hostile_manifest_removes_nothing_else(tmp_path: Path) -> None:
    other = tmp_path / "slices" / "job=other" / "part-0.parquet"
    other.parent.mkdir(parents=True)
    other.write_bytes(b"mine")
    (tmp_path / "keep").write_bytes(b"mine")
    where = tmp_path / "manifests/job=2-saved/rank=0000"
    where.mkdir(parents=True)
    paths = ["../keep", "keep", "slices/job=other/part-0.parquet", "slices/job=2-saved/rank=0000/../../job=other/part-0.parquet"]
    listed = {"slices": [{"path": path} for path in paths]}
    (where / "manifest.json").write_text(json.dumps({"session_id": "", "tables": listed}))
    export([str(DATA / "versions/2-saved.tftrace")], str(tmp_path))
    assert other.read_bytes() == (tmp_path / "keep").read_bytes() == b"mine"


def test_names_that_no_path_may_hold(tmp_path: Path) -> None:
    name = "../a=b/'; --%41"
    export([str(DATA / "versions/2-saved.tftrace")], str(tmp_path / "out"), name)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    read = f"read_parquet('{tmp_path}/out/runs/*/*/*.parquet', hive_partitioning = true)"
    assert duckdb.connect().execute(f"SELECT DISTINCT job FROM {read}").fetchall() == [(name,)]


def test_hostile_texts_come_back_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "it's.pb"
    file.write_bytes(RAW.replace(b"MatMul_26", b"\xff\x00';--\n<b"))
    export([str(file)], str(tmp_path / "it's here"))
    frame = polars.read_parquet(tmp_path / "it's here" / "slices", hive_partitioning=True)
    with tftracer.open(file) as session:
        assert frame["name"].to_list() == session.slices()["name"].tolist()
    assert "�\x00';--\n<b" in "".join(frame["name"].to_list())


def test_a_cut_file_is_exported_as_far_as_it_goes(tmp_path: Path) -> None:
    whole_file = (DATA / "versions/2-spool.tftrace").read_bytes()
    cut = tmp_path / "cut.tftrace"
    cut.write_bytes(whole_file[: len(whole_file) * 2 // 3])
    (manifest,) = export([str(cut)], str(tmp_path / "out"))
    read = duckdb.connect().execute(f"SELECT cut FROM read_parquet('{tmp_path}/out/session/*/*/*.parquet')").fetchone()
    assert read and read[0] and sum(part["rows"] for part in manifest["tables"]["runs"]) > 0


CRASH = """
import os, sys
from tftracer.export import write_files
from tftracer.scripting.export import export
from tftracer.scripting.query import query
left, publish = int(sys.argv[3]), write_files.LocalFolder.publish
def crashing(self, temporary, path):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
    publish(self, temporary, path)
write_files.LocalFolder.publish = crashing
export([sys.argv[1]], sys.argv[2])
"""


@pytest.mark.parametrize("published", [0, 3, 11])
def test_a_crash_leaves_whole_files_only(tmp_path: Path, published: int) -> None:
    """Killed before the file after ``published`` gets its name; the manifest is the last of twelve."""
    out = tmp_path / "out"
    command = [sys.executable, "-c", CRASH, str(DATA / "versions/2-saved.tftrace"), str(out), str(published)]
    done = subprocess.run(command, check=False, env={**os.environ}, timeout=120, capture_output=True)
    assert done.returncode == -9, done.stderr
    files = list(out.rglob("*.parquet"))
    assert len(files) == published and not list(out.rglob("manifest.json"))
    for file in files:
        pyarrow.parquet.read_table(file)
    export([str(DATA / "versions/2-saved.tftrace")], str(out))
    assert len(list(out.rglob("*.parquet"))) == len(TABLES) and len(list(out.rglob("manifest.json"))) == 1


def test_other_storage_is_written_through_fsspec() -> None:
    export([str(DATA / "versions/2-saved.tftrace")], "memory://bucket/out")
    system = fsspec.filesystem("memory")
    files = system.find("/bucket/out")
    assert len(files) == len(TABLES) + 1 and not [file for file in files if ".part" in file]
    with (
        system.open("/bucket/out/slices/job=2-saved/rank=0000/part-0.parquet") as file,
        tftracer.open(DATA / "versions/2-saved.tftrace") as session,
    ):
        assert pandas.read_parquet(file)["dur_ns"].sum() == session.slices()["dur_ns"].sum()
    export([str(DATA / "versions/2-saved.tftrace")], "memory://bucket/out")
    assert system.find("/bucket/out") == files


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(DATA / "versions/2-saved.tftrace")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "fsspec", None)
        with pytest.raises(UnsupportedError, match="pip install fsspec"):
            export([file], "s3://bucket/out")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "duckdb", None)
        with pytest.raises(UnsupportedError, match=r"pip install tftracer\[tables\]"):
            export([file], str(tmp_path))
    with pytest.raises(UnsupportedError):
        export([file], "no-such-scheme://bucket")


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot be written"):
        export([str(DATA / "versions/2-saved.tftrace")], str(tmp_path / "file"))
    shutil.rmtree(tmp_path)
