"""``tftracer fleet``: over exported partitions, on this machine and on a Dask cluster that loses a worker."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pytest
from distributed import Client, LocalCluster
from job_page import wait_for
from made_fleet import SLOW, make_fleet
from recording import recording, steps

from tftracer.errors import StorageError, UnsupportedError
from tftracer.export.tables.schema import SCHEMA_VERSION
from tftracer.fleet.ask import ask
from tftracer.fleet.text import as_text
from tftracer.scripting.export import export
from tftracer.scripting.query import query

DATA = Path(__file__).parents[1] / "data"
RANKS, STEPS = 8, 4
JOBS = {"night": RANKS, "day": 3}


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("fleet")
    return {"folder": folder, **{job: make_fleet(folder, job, ranks, STEPS) for job, ranks in JOBS.items()}}


@pytest.fixture(scope="module")
def folder(expected: dict[str, Any]) -> Path:
    return Path(expected["folder"])


def test_the_slow_ranks_and_what_arrives_last(folder: Path, expected: dict[str, Any]) -> None:
    fleet = ask(str(folder))
    assert (fleet.partitions, fleet.jobs, fleet.left_out) == (sum(JOBS.values()), 2, [])
    assert {(row["job"], row["rank"]) for row in fleet.ranks[:2]} == {(job, expected[job]["slow"]) for job in JOBS}
    assert all(abs(row["ratio"] - SLOW) < 0.1 and row["traced_steps"] == STEPS for row in fleet.ranks[:2])
    assert all(row["ratio"] < 1.1 for row in fleet.ranks[2:])
    for row in fleet.collectives:
        assert (row["last_rank"], row["times_last"], row["times"]) == (expected[row["job"]]["slow"], STEPS, STEPS)
    assert {(row["job"], row["layer"]) for row in fleet.layers} == {(job, expected[job]["layer"]) for job in JOBS}


def test_op_statistics_are_those_of_all_slices(folder: Path, expected: dict[str, Any]) -> None:
    rows = {row["op"]: row for row in ask(str(folder), limit=1000).ops}
    exact = duckdb.sql(f"""SELECT op, count(*), sum(dur_ns), quantile_disc(dur_ns, 0.5), quantile_disc(dur_ns, 0.99), max(dur_ns)
        FROM read_parquet('{folder}/slices/*/*/*.parquet') WHERE counted AND dur_ns IS NOT NULL AND op <> '' GROUP BY op""")
    for op, count, total, p50, p99, longest in exact.fetchall():
        row = rows.pop(op)
        assert (row["executions"], row["total_ns"], row["longest_ns"]) == (count, total, longest)
        assert count == sum(expected[job]["executions"][op] for job in JOBS)
        assert row["p50_ns"] == pytest.approx(p50, rel=0.0101, abs=1) and row["p99_ns"] == pytest.approx(p99, rel=0.0101, abs=1)
    assert rows == {}


def test_pieces_of_any_size_give_the_same_answer(folder: Path) -> None:
    assert ask(str(folder), chunk_rows=1) == ask(str(folder), chunk_rows=10_000_000)


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as made:
        yield made


def test_a_cluster_that_loses_a_worker_answers_all_the_same(folder: Path, cluster: LocalCluster) -> None:
    with Client(cluster) as client:
        processes = client.run(os.getpid)
    answers = []
    asking = threading.Thread(target=lambda: answers.append(ask(str(folder), cluster.scheduler_address, chunk_rows=1)))
    asking.start()
    workers = cluster.scheduler.workers
    wait_for(lambda: any(worker.has_what for worker in list(workers.values())), "a first part")
    address = next(address for address, worker in list(workers.items()) if worker.has_what)
    os.kill(processes[address], signal.SIGKILL)
    wait_for(lambda: address not in workers, "the loss of the worker")
    asking.join()
    assert answers == [ask(str(folder))]


def test_what_real_sessions_were_exported_as(tmp_path: Path) -> None:
    files = []
    for rank in (0, 1):
        raw = (DATA / f"horovod_rank{rank}_tf2.15_cpu.pb").read_bytes()
        with recording(tmp_path / f"spool{rank}") as recorder:
            steps(recorder, 12, traced={4: raw, 8: raw})
            recorder.save(str(tmp_path / f"rank{rank}.tftrace"))
        files.append(str(tmp_path / f"rank{rank}.tftrace"))
    export(files, str(tmp_path / "exported"), job="real")
    fleet = ask(str(tmp_path / "exported"))
    assert (fleet.partitions, fleet.jobs) == (2, 1)
    assert sorted((row["job"], row["rank"], row["traced_steps"]) for row in fleet.ranks) == [("real", 0, 2), ("real", 1, 2)]
    assert [row["step_ns"] for row in fleet.ranks] == [1_000_000, 1_000_000]
    assert fleet.collectives and all(row["times"] == 2 for row in fleet.collectives)
    assert fleet.layers == [], "both steps are the same trace"


def test_the_command(folder: Path) -> None:
    command = [sys.executable, "-m", "tftracer", "fleet", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([*command, "--json", "--top", "3"], capture_output=True, text=True, env=environment, check=True)
    answer = json.loads(done.stdout)
    assert len(answer["ops"]) == len(answer["ranks"]) == 3 and answer["partitions"] == sum(JOBS.values())
    text = as_text(ask(str(folder), limit=3))
    assert "Slowest ranks" in text and re.search(r"1(4[5-9]|5[0-5])%", text)
    assert "Clocks agree within 2 µs." in text


def test_pandas_reads_the_same_files(folder: Path) -> None:
    slices = pandas.read_parquet(folder / "slices", columns=["op", "dur_ns", "counted", "job", "rank"])
    assert set(slices["job"].astype(str)) == set(JOBS) and slices["rank"].astype(int).max() == RANKS - 1
    total = slices[slices["counted"]].groupby("op")["dur_ns"].sum()
    assert {row["op"]: row["total_ns"] for row in ask(str(folder)).ops}.items() <= total.to_dict().items()


def test_what_cannot_be_answered_says_why(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StorageError, match="export FILE"):
        ask(str(tmp_path))
    with pytest.raises(StorageError, match="no Dask scheduler"):
        ask(str(folder), "nonsense://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UnsupportedError, match=r"tftracer\[fleet\]"):
        ask(str(folder), "tcp://127.0.0.1:1")


def test_partitions_that_cannot_be_trusted_are_left_out_and_named(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    manifests = copy / "manifests/job=night"
    (manifests / "rank=0000/manifest.json").write_text("{")
    foreign = json.loads((manifests / "rank=0001/manifest.json").read_text())
    foreign["tables"]["slices"][0]["path"] = "../../etc/passwd"
    (manifests / "rank=0001/manifest.json").write_text(json.dumps(foreign))
    newer = json.loads((manifests / "rank=0003/manifest.json").read_text())
    (manifests / "rank=0003/manifest.json").write_text(json.dumps({**newer, "schema": 99}))
    (manifests / "rank=0004/manifest.json").unlink()  # an export that was killed
    fleet = ask(str(copy))
    assert fleet.partitions == sum(JOBS.values()) - 4
    for rank, why in (
        ("0004", "did not finish"),
        ("0000", "cannot be read"),
        ("0001", "files of other partitions"),
        ("0003", "version 99"),
    ):
        assert any(rank in text and why in text for text in fleet.left_out)
        assert rank in as_text(fleet)


@pytest.fixture(scope="module")
def two_hundred(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet of 200 partitions with one file cut, one empty, one missing, and one damaged within."""
    folder = tmp_path_factory.mktemp("two_hundred")
    make_fleet(folder, "night", 200, 1, 5)
    part = "job=night/rank={}/part-0.parquet"
    cut, empty, missing, damaged = (folder / "slices" / part.format(rank) for rank in ("0017", "0099", "0100", "0150"))
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    empty.write_bytes(b"")
    missing.unlink()
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    return folder


def test_a_damaged_partition_is_left_out_and_named_and_the_other_answers_stand(two_hundred: Path, tmp_path: Path) -> None:
    fleet = ask(str(two_hundred))
    assert fleet.partitions == 196
    whys = {text.removeprefix("job=night/rank=")[:4]: text for text in fleet.left_out}
    assert whys.keys() == {"0017", "0099", "0100", "0150"}
    assert "were written" in whys["0017"] and "has 0 bytes" in whys["0099"] and "is missing" in whys["0100"]
    assert "cannot be read" in whys["0150"]
    whole = tmp_path / "whole"
    shutil.copytree(two_hundred, whole)
    for rank in whys:
        shutil.rmtree(whole / f"manifests/job=night/rank={rank}")
        for table in ("session", "runs", "steps", "traces", "slices"):
            shutil.rmtree(whole / table / f"job=night/rank={rank}")
    assert dataclasses.replace(fleet, left_out=[]) == ask(str(whole))


def test_a_query_counts_whole_partitions_alone_and_names_the_others(two_hundred: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copytree(two_hundred / "session/job=night/rank=0001", two_hundred / "session/job=night/rank=0900")  # no manifest
    answer = query([str(two_hundred)], "SELECT count(*) FROM session")
    assert answer.rows == [(197,)], "a file that is damaged within has the size that was written"
    for rank in ("0017", "0099", "0100", "0900"):
        assert f"rank={rank}" in caplog.text
    shutil.rmtree(two_hundred / "session/job=night/rank=0900")


def test_a_query_of_a_table_with_a_file_that_is_damaged_within_answers_of_the_others(
    two_hundred: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answer = query([str(two_hundred)], "SELECT count(DISTINCT rank) FROM slices")
    assert answer.rows == [(196,)] and "rank=0150: it cannot be read" in caplog.text


@pytest.mark.parametrize("tables", ['["slices"]', "[" * 200_000], ids=["a list", "deep"])
def test_a_manifest_of_another_shape_is_named(folder: Path, tmp_path: Path, tables: str) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    manifest = copy / "manifests/job=night/rank=0000/manifest.json"
    manifest.write_text(f'{{"schema": {SCHEMA_VERSION}, "job": "night", "rank": 0, "tables": {tables}}}')
    fleet = ask(str(copy))
    assert fleet.partitions == sum(JOBS.values()) - 1 and "rank=0000: its manifest cannot be read" in fleet.left_out[0]


def test_a_fleet_of_which_nothing_can_be_read_says_why(tmp_path: Path) -> None:
    make_fleet(tmp_path, "night", 1, 1, 5)
    file = tmp_path / "slices/job=night/rank=0000/part-0.parquet"
    file.write_bytes(b"x" * file.stat().st_size)
    with pytest.raises(StorageError, match=r"no partition can be read.*rank=0000"):
        ask(str(tmp_path))
