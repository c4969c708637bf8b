"""Real Horovod ranks on this machine: the examples, the same step on all, the rank slowed on purpose."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from job_page import PATIENCE_S, JobPage, wait_for

from tftracer.job.analyses.answers import JobAnswers
from tftracer.job.analyses.process_traces import ProcessTrace
from tftracer.session.files.saved import open_session
from tftracer.trace.decode.run_metadata import decode_run_metadata

HERE = Path(__file__).parent
EXAMPLES = HERE.parent.parent / "examples"
HOROVODRUN = Path(sys.executable).with_name("horovodrun")
COLLECTIVES = {"HorovodAllreduce", "HorovodGroupedAllreduce", "HorovodAllgather", "HorovodBroadcast"}

pytestmark = pytest.mark.horovod


def environment(tmp_path: Path) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "TF_CPP_MIN_LOG_LEVEL": "2", "TFTRACER_SPOOL_DIR": str(tmp_path / "spool")}
    return {**os.environ, **own, "TFTRACER_HUB_DIR": str(tmp_path / "hubs")}


def command(ranks: int, *script: str) -> list[str]:
    return [str(HOROVODRUN), "--gloo", "-np", str(ranks), "-H", f"localhost:{ranks}", sys.executable, *script]


@pytest.mark.parametrize("name", ["horovod_one", "horovod_all", "horovod_one_estimator", "horovod_all_estimator"])
def test_the_examples(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        command(2, str(EXAMPLES / f"{name}.py"), "--steps", "100"),
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout
    assert "Traceback" not in done.stdout, done.stdout
    pages = dict(re.findall(r"\[(\d)\]<stderr>:tftracer: watch and trace this training at http://[^:/]+:(\d+)/", done.stdout))
    assert set(pages) == ({"0"} if "_one" in name else {"0", "1"}), done.stdout
    assert len(set(pages.values())) == len(pages), "each rank has a port of its own"


RUN = [sys.executable, "-m", "tftracer", "run", "--port", "0"]


@pytest.mark.parametrize("starts", ["each rank", "the launcher"])
def test_a_pair_under_tftracer_run_trains_as_without(starts: str, tmp_path: Path) -> None:
    plain = command(2, str(HERE / "plain_train.py"))
    traced = [*plain[:-2], *RUN, plain[-1]] if starts == "each rank" else [*RUN, *plain]
    folders = [tmp_path / "plain", tmp_path / "traced"]
    both = [start_job(folder, arguments) for folder, arguments in zip(folders, (plain, traced))]
    (expected, _), (output, errors) = [process.communicate(timeout=PATIENCE_S) for process in both]
    assert [process.returncode for process in both] == [0, 0], errors
    assert sorted(output.splitlines()) == sorted(expected.splitlines()) and "together 3.0" in output
    recorded = [open_session(str(path)).runs() for path in (folders[1] / "spool").glob("*.tftrace")]
    steps = [{run["title"]: run["steps"] for run in runs} for runs in recorded if runs]
    assert len(steps) == 2 and all((one["fit: net"], one["agree"]) == (16, 3) for one in steps), (steps, errors)


def start_job(folder: Path, arguments: list[str]) -> subprocess.Popen[str]:
    folder.mkdir()
    pipe = subprocess.PIPE
    return subprocess.Popen(arguments, cwd=folder, env=environment(folder), stdout=pipe, stderr=pipe, text=True)


PLACES = """
import horovod.tensorflow as hvd
from tftracer.session.process.launcher import detect_launcher
print("PLACE", detect_launcher({})["rank"], detect_launcher({"OMPI_COMM_WORLD_RANK": "3"})["rank"])
hvd.init()
print("PLACE", detect_launcher({})["rank"], detect_launcher({"OMPI_COMM_WORLD_RANK": "3"})["rank"])
"""


def test_horovod_is_asked_once_it_is_initialised_and_not_before(tmp_path: Path) -> None:
    asked = [sys.executable, "-c", PLACES]
    said = subprocess.run(asked, env=environment(tmp_path), stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True)
    assert re.findall(r"PLACE (.*)", said.stdout) == ["None 3", "0 0"]


@contextmanager
def job(tmp_path: Path, ranks: int, slow: str) -> Iterator[JobPage]:
    """A job under way, all of its ranks on rank 0's page and training."""
    log = (tmp_path / "log").open("w+")
    arguments = command(ranks, str(HERE / "train.py"), str(tmp_path), "--slow", slow)
    with log, subprocess.Popen(arguments, env=environment(tmp_path), stdout=log, stderr=subprocess.STDOUT) as running:
        try:
            wait_for(lambda: (tmp_path / "url").exists() or running.poll() is not None)
            assert running.poll() is None, (tmp_path / "log").read_text()
            page = JobPage((tmp_path / "url").read_text())
            wait_for(lambda: training(page, ranks))
            yield page
            (tmp_path / "stop").touch()
            assert running.wait(PATIENCE_S) == 0, (tmp_path / "log").read_text()
        finally:
            (tmp_path / "stop").touch()
            if running.poll() is None:
                running.terminate()


def training(page: JobPage, ranks: int) -> bool:
    processes = page.get("api/session")["runs"] and page.get("api/job")["processes"]
    return len(processes) == ranks and all(p["steps"] > 3 for p in processes)


@pytest.mark.parametrize(("ranks", "slow", "cause"), [(2, "input", "input"), (2, "feed", "input"), (4, "compute", "compute")])
def test_the_same_step_on_all_and_the_rank_slowed_on_purpose(tmp_path: Path, ranks: int, slow: str, cause: str) -> None:
    with job(tmp_path, ranks, slow) as page:
        traces = [page.trace() for _ in range(3)]
        newest = traces[-1]
        for traced in traces:
            assert traced["state"] == "ready" and len(traced["ready"]) == ranks, traced
            assert set(traced["steps"].values()) == {traced["step"]}
        titles = {p["id"]: p["title"] for p in page.get("api/job")["processes"]}
        for process in titles:
            (run,) = (r for r in page.get(f"job/processes/{process}/api/session")["runs"] if r["title"] == newest["run_title"])
            assert {t["step"] for t in traces} <= {record["step"] for record in run["traces"]}
        analysis = page.get(f"api/job/traces/{newest['id']}/analysis")
        assert len(analysis["collectives"]) >= 6 and all(len(row["waited_ns"]) == ranks - 1 for row in analysis["collectives"])
        assert {row["op"] for row in analysis["collectives"]} >= COLLECTIVES
        suspect = analysis["usual_suspects"][0]
        assert (titles[suspect["process"]], suspect["cause"]) == (f"rank {ranks - 1}", cause), analysis["usual_suspects"]
        timeline = page.packed(f"api/job/traces/{newest['id']}/timeline")
        assert {lane["group"] for lane in timeline["lanes"]} == set(titles.values())
        on_one_clock(analysis["clocks"])
        reopens(page.ask("api/job/file"), tmp_path, newest, ranks)
        some = sorted(titles)[:-1]
        subset = page.trace(processes=some)
        assert subset["state"] == "ready" and sorted(subset["ready"]) == some


def on_one_clock(clocks: Sequence[Mapping[str, Any]]) -> None:
    """All ranks ran on this machine: what was found of their clocks must be nothing, within what it is said to be known."""
    assert len(clocks) > 1 and all(clock["matches"] > 0 for clock in clocks[1:])
    for clock in clocks[1:]:
        assert abs(clock["offset_ns"]) < max(3 * clock["uncertainty_ns"], 20e6)


def reopens(saved: bytes, tmp_path: Path, traced: dict[str, Any], ranks: int) -> None:
    """The job's file holds every rank's part of the step."""
    from tftracer.job.saved.job import JOB_TRACE
    from tftracer.storage.file_bytes import FileBytes
    from tftracer.storage.tftrace_reader import Reader

    path = tmp_path / "job.tftrace"
    path.write_bytes(saved)
    records = [r for r in Reader(FileBytes(path)) if r.type == JOB_TRACE and r.meta["job_trace"] == traced["id"]]
    parts = [ProcessTrace(r.meta["process"], r.meta["process"], decode_run_metadata(r.payload.raw())) for r in records]
    answers = JobAnswers(parts, "", 1)  # as if each had run on a machine of its own: the ends alone tell of the clocks
    assert len(parts) == ranks and answers.collectives.names
    on_one_clock(answers.analysis()["clocks"])
    skew_is_removed(parts, answers)


def skew_is_removed(parts: Sequence[ProcessTrace], plain: JobAnswers) -> None:
    """With 50 ms and 100 ppm on the last rank's times, the step is drawn as without, to a tenth of its shortest collective.

    And to what the drift makes of one step's length, which its ends, all at one moment, cannot tell.
    """
    *others, last = parts
    trace = last.trace
    start, end = (times + np.rint(times * 100e-6).astype(np.int64) for times in (trace.start, trace.end))
    skewed = replace(last, trace=replace(trace, origin_ns=trace.origin_ns + 50_000_000, start=start, end=end))
    answers = JobAnswers([*others, skewed], "", 1)
    offset = answers.analysis()["clocks"][-1]["offset_ns"] - plain.analysis()["clocks"][-1]["offset_ns"]
    shortest = float((plain.collectives.end - plain.collectives.start)[plain.collectives.end >= 0].min())
    allowed = shortest / 10 + 100e-6 * plain.merged.trace.duration_ns
    assert abs(offset - 50_000_000) < allowed, (offset, shortest)
    assert np.abs(answers.merged.trace.start - plain.merged.trace.start).max() < allowed
