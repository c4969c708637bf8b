"""A session is exported while it is recorded, by a process of its own, whatever ends the training."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.parquet
import pytest
from job_page import wait_for
from recording import RAW, killed_before_analysis, recording, step, steps

import tftracer
from tftracer.errors import UnsupportedError
from tftracer.export import parquet
from tftracer.export.tables.schema import OF_TRACES, TABLES
from tftracer.export.write_files import folder
from tftracer.scripting.export_process import ExportProcess, partition_rank
from tftracer.scripting.live_export import LivePartition
from tftracer.scripting.query import query
from tftracer.session.files.saved import open_session
from tftracer.session.process.launcher import detect_launcher

MANIFEST = "manifests/job=mine/rank=0000/manifest.json"

TRAINING = """
import sys
sys.path.insert(0, sys.argv[3])
from recording import RAW, step
from tftracer.session.live import Recorder
from tftracer.scripting.export_process import ExportProcess
recorder = Recorder(spool_dir=sys.argv[1], keep_traces=100_000).start()
exporting = ExportProcess(recorder.session(), "mine", sys.argv[2], print, round_s=0.05)
number = 0
for line in sys.stdin:
    for number in range(number + 1, number + 1 + int(line)):
        step(recorder, number, raw=RAW)
        recorder.flush()
    print("recorded", flush=True)
"""


def exported(folder: Path) -> list[int]:
    """The numbers of the traces that the manifest's files hold."""
    manifest = json.loads((folder / MANIFEST).read_text())
    return sorted(number for part in manifest["tables"]["traces"] for number in read(folder, part["path"], "trace_id"))


def read(folder: Path, part: str, column: str) -> list[int]:
    return list(pyarrow.parquet.ParquetFile(folder / part).read([column])[column].to_pylist())


def test_what_is_exported_is_what_the_saved_file_holds(tmp_path: Path) -> None:
    out, problems = tmp_path / "out", list[str]()
    with recording(tmp_path / "spool", keep_traces=100) as recorder:
        exporting = ExportProcess(recorder.session(), "mine", str(out), problems.append, round_s=0.05)
        steps(recorder, 5, traced={2: RAW, 4: RAW})
        wait_for(lambda: (out / MANIFEST).exists() and exported(out) == [1, 2])
        first = {path: path.read_bytes() for path in out.glob("slices/*/*/*")}
        for number in (6, 7):
            step(recorder, number, raw=RAW)
        assert recorder.flush()
        recorder.save(str(tmp_path / "saved.tftrace"))
        recorder.close()
        exporting.stop()
    assert problems == [] and exported(out) == [1, 2, 3, 4]
    assert all(path.read_bytes() == content for path, content in first.items()), "a part of traces never changes"
    goes_on = {"session": ", ended_at", "ledger": ", duration_ns"}  # until its end, which each of the two tells for itself
    for table in TABLES:
        but_end = " WHERE kind <> 'tracer'" if table == "ledger" else ""  # writing the end comes after the saved file
        sql = f"SELECT * EXCLUDE (job{goes_on.get(table, '')}) FROM {table}{but_end} ORDER BY ALL"
        assert query([str(out)], sql).rows == query([str(tmp_path / "saved.tftrace")], sql).rows, table
    assert not [path for path in out.rglob("*") if path.suffix == ".part"]


@pytest.fixture
def training(tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", TRAINING, str(tmp_path / "spool"), str(tmp_path / "out"), str(Path(__file__).parents[1])]
        pipe = subprocess.PIPE
        started.append(process := subprocess.Popen(command, start_new_session=True, stdin=pipe, stdout=pipe, bufsize=0))
        assert process.stdin is not None and process.stdout is not None
        for count in (4, 40):  # those that follow are exported while the test ends the processes
            process.stdin.write(b"%d\n" % count)
            assert process.stdout.readline() == b"recorded\n"
            wait_for((tmp_path / "out" / MANIFEST).exists)
            wait_for(lambda: len(exported(tmp_path / "out")) > 3)
        return process

    yield start
    for process in started:
        with process:
            process.kill()


def test_of_a_killed_training_all_is_exported(training: Callable[[], subprocess.Popen[bytes]], tmp_path: Path) -> None:
    process = training()
    process.kill()
    process.wait()
    (spool,) = (tmp_path / "spool").glob("*.tftrace")
    recorded = [trace["id"] for run in open_session(spool).runs() for trace in run["traces"]]
    wait_for(lambda: exported(tmp_path / "out") == sorted(recorded))


def test_a_trace_that_was_not_analyzed_before_the_kill_is_exported_at_the_end(tmp_path: Path) -> None:
    """The file has not changed since the last look at it, when the trace was left for the next."""
    out, connection = tmp_path / "out", parquet.connect()
    with contextlib.closing(folder(str(out))) as target, contextlib.closing(connection):
        partition = LivePartition(connection, target, killed_before_analysis(tmp_path), "mine", 0)
        assert partition.write() and exported(out) == []
        assert not partition.write()
        assert partition.write(ended=True) and exported(out) == [1]


def test_of_a_killed_export_there_are_whole_files_only(training: Callable[[], subprocess.Popen[bytes]], tmp_path: Path) -> None:
    process = training()
    os.killpg(process.pid, signal.SIGKILL)  # with the process that exports
    process.wait()
    files = list((tmp_path / "out").rglob("*.parquet"))
    assert len(files) >= len(TABLES)
    for file in files:
        pyarrow.parquet.read_table(file)
    listed = json.loads((tmp_path / "out" / MANIFEST).read_text())["tables"]
    assert {tmp_path / "out" / part["path"] for parts in listed.values() for part in parts} <= set(files)


def test_another_session_s_partition_is_left_alone_and_that_is_said(tmp_path: Path) -> None:
    out, problems = tmp_path / "out", list[str]()
    for name in ("a", "b"):
        with recording(tmp_path / name) as recorder:
            exporting = ExportProcess(recorder.session(), "mine", str(out), problems.append, round_s=0.05)
            steps(recorder, 2, traced={2: RAW})
            recorder.close()
            exporting.stop()
        assert len(exported(out)) == 1
        owner = json.loads((out / MANIFEST).read_text())["session_id"]
        assert (owner == recorder.session()["id"]) == (name == "a")
    assert len(set(problems)) == 1 and "holds another session" in problems[0]


def test_a_last_round_that_fails_is_tried_again_and_the_script_s_end_does_not_wait_for_it(tmp_path: Path) -> None:
    out, problems = tmp_path / "out", list[str]()
    with recording(tmp_path / "spool") as recorder:
        exporting = ExportProcess(recorder.session(), "mine", str(out), problems.append, round_s=2)
        (obstacle := out / "manifests").parent.mkdir(exist_ok=True)
        obstacle.write_text("no folder")
        steps(recorder, 2, traced={2: RAW})
        recorder.close()
        exporting.stop()
    assert problems and str(obstacle) in problems[-1] and not obstacle.is_dir()
    obstacle.unlink()
    wait_for(lambda: (out / MANIFEST).exists() and exported(out) == [1])


def test_what_is_missing_is_a_problem_on_the_page_and_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with recording(tmp_path) as recorder, pytest.raises(UnsupportedError, match=r"pip install tftracer\[tables\]"):
        ExportProcess(recorder.session(), "", str(tmp_path), print)
    server = tftracer.TracingServer(spool_dir=tmp_path, export_dir=tmp_path / "out", start_web_server_on_start=False)
    try:
        assert (
            "tftracer[tables]"
            in {problem["code"]: problem["message"] for problem in server.recorder.session()["problems"]}["export"]
        )
    finally:
        server.close()


def test_a_server_exports_its_session_with_its_rank(tmp_path: Path) -> None:
    server = tftracer.TracingServer(spool_dir=tmp_path / "spool", export_dir=tmp_path / "out", start_web_server_on_start=False)
    steps(server.recorder, 3, traced={2: RAW})
    name = Path(server.session_file).stem
    server.close()
    assert query([str(tmp_path / "out")], "SELECT job, rank, run_id, steps FROM runs").rows == [(name, 0, 1, 3)]
    for table in OF_TRACES:
        assert (tmp_path / "out" / table / f"job={name}/rank=0000/part-0.parquet").exists()


@pytest.mark.parametrize(
    ("role", "task", "rank"), [("chief", 0, 0), ("worker", 1, 2), ("ps", 0, 3), ("ps", 1, 4), ("evaluator", 0, 5003)]
)
def test_processes_without_a_rank_have_a_number_of_their_own(role: str, task: int, rank: int) -> None:
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1", "e:1"]}
    config = json.dumps({"cluster": cluster, "task": {"type": role, "index": task}})
    assert partition_rank(detect_launcher({"TF_CONFIG": config})) == rank
