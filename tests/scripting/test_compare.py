"""``tftracer compare`` and ``Session.compare``, on recorded sessions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Container
from pathlib import Path
from threading import get_ident
from xml.etree import ElementTree

import numpy as np
import pytest
from recording import LOSS, RAW, TRAIN, Tensor, X, captured, recording

import tftracer
from tftracer.errors import UnknownError, UsageError
from tftracer.scripting.compare import compare_sessions, measure

ROOT = Path(__file__).parents[2]
SLOW_START_NS = 50_000_000


def record(path: Path, step_ns: float, seed: int, steps: int = 500, slow: Container[int] = ()) -> Path:
    """A session whose step takes about so long: the first tenth longer, two traced steps much longer, and those after them.

    ``slow``: numbers of steps that take ten times as long.
    """
    rng = np.random.default_rng(seed)
    level = step_ns * np.exp(rng.normal(0, 0.01))
    with recording(path.parent / f"{path.name}.spool") as recorder:
        at = 0
        for number in range(1, steps + 1):
            odd = number <= steps // 10 or number % 200 in (0, 1)
            length = int(SLOW_START_NS if odd else level * np.exp(rng.normal(0, 0.05)) * (10 if number in slow else 1))
            capture = captured(recorder, RAW) if number % 200 == 0 else None
            recorder.queue.add(((TRAIN, LOSS), (X,), None, at, at + length, get_ident(), capture))
            at += length + 100_000
            if number % 100 == 0:
                assert recorder.flush()
        assert recorder.flush()
        recorder.save(str(path))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    folder = tmp_path_factory.mktemp("sessions")
    kinds = {"a": 3.0e6, "same": 3.0e6, "longer": 3.3e6}
    return {
        kind: [record(folder / f"{kind}{i}.tftrace", step_ns, seed=10 * number + i) for i in range(4)]
        for number, (kind, step_ns) in enumerate(kinds.items())
    }


def run(*arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tftracer", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, cwd=folder, check=False)


def test_what_is_measured_of_a_session(files: dict[str, list[Path]]) -> None:
    with tftracer.open(files["a"][0]) as session:
        measured = measure(session, session.runs()["title"][0])
        assert measured.steps == 450 - 4 and measured.traces == 2
        assert measured.values["p99"] < SLOW_START_NS and measured.values["step"] == pytest.approx(3e6, rel=0.1)
        assert measured.values["gap"] == pytest.approx(100_000, abs=2000)
        ops = session.ops("name", trace=int(session.traces()["trace_id"][0]))
        assert measured.ops == dict(zip(ops["key"].tolist(), ops["total_ns"].tolist()))
        assert measured.values["memory"] == session.traces()["memory_peak_bytes"][0]
        assert measured.values["bytes"] == session.transfers(int(session.traces()["trace_id"][0]))["bytes"].sum()


def test_a_longer_step_is_found_and_an_equal_one_is_not(files: dict[str, list[Path]]) -> None:
    opened = {kind: [tftracer.open(path) for path in paths] for kind, paths in files.items()}
    first, *others = opened["a"]
    longer = first.compare(*opened["longer"], before=others)
    assert longer.shifts["step"].low > 0.05 and longer.shifts["step"].high < 0.15
    assert not first.compare(*opened["same"], before=others).shifts["step"].differs
    assert longer.ops.changes == [] and longer.new_findings == []
    one = first.compare(opened["longer"][0])
    assert one.shifts["step"].basis == "assumed" and "With one session a side" in one.warnings[0]


def test_p99_of_a_long_run_is_of_all_its_steps(tmp_path: Path) -> None:
    usual = record(tmp_path / "usual", 3e6, seed=1, steps=6000)
    odd = record(tmp_path / "odd", 3e6, seed=2, steps=6000, slow=range(1000, 1200))
    with tftracer.open(usual) as before, tftracer.open(odd) as after:
        comparison = before.compare(after)
    p99, step = comparison.shifts["p99"], comparison.shifts["step"]
    assert p99.b == pytest.approx(10 * step.b, rel=0.2) and p99.a == pytest.approx(step.a, rel=0.2)
    assert any("p99 is computed from all steps" in warning and "1%" in warning for warning in comparison.warnings)


def test_the_gate_s_exit_codes(files: dict[str, list[Path]], tmp_path: Path) -> None:
    before, longer = files["a"], files["longer"]
    junit = tmp_path / "gate.xml"
    failed = run("compare", "--fail-if", "step > 5%", "--fail-if", "bytes > 1%", "--junit", junit, *before, "--", *longer)
    assert (failed.returncode, failed.stderr) == (4, "")
    assert "FAIL         step > 5%" in failed.stdout and "PASS         bytes > 1%" in failed.stdout
    assert ElementTree.fromstring(junit.read_text()).get("failures") == "1"
    assert run("compare", *before, "--fail-if", "step > 5%", "--", *files["same"]).returncode == 0
    undecided = run("compare", before[0], "--json", "--fail-if", "step > 10%", "--", longer[0])
    answer = json.loads(undecided.stdout)
    assert undecided.returncode == 5 and answer["rules"][0]["state"] == "INCONCLUSIVE"
    assert answer["shifts"]["step"]["low"] < 0.1 < answer["shifts"]["step"]["high"]
    assert run("compare", *before, "--", *longer).returncode == 0, "without a rule there is no gate"


def test_wrong_usage_is_said(files: dict[str, list[Path]], tmp_path: Path) -> None:
    before, after = files["a"][0], files["longer"][0]
    for code, arguments, why in [
        (2, (before, after), "BEFORE... -- AFTER..."),
        (2, (before, "--"), "After --"),
        (2, (before, "--", after, "--json"), "After --"),
        (2, (before, "--fail-if", "speed > 5%", "--", after), "is no rule"),
        (1, (before, "--", tmp_path / "nothing"), "nothing"),
        (1, (before, "--run", "no such run", "--", after), "no such run"),
    ]:
        done = run("compare", *arguments)
        assert done.returncode == code and why in done.stderr and "Traceback" not in done.stderr, arguments
    assert run("compare", "--help").returncode == 0


def test_of_sessions_without_a_run_in_common_the_longest_runs_are_compared(files: dict[str, list[Path]]) -> None:
    """A function whose arguments have other shapes has another title."""
    one, other = tftracer.open(files["a"][0]), tftracer.open(ROOT / "tests/data/versions/2-saved.tftrace")
    with one, other:
        comparison = one.compare(other)
        assert "The runs differ" in comparison.warnings[0] and "no run that all sessions have" in comparison.warnings[0]
        with pytest.raises(UnknownError, match="Not all sessions have a run"):
            one.compare(other, run="nothing")
        with tftracer.open(files["a"][1]) as third, pytest.raises(UnknownError, match="no run in common"):
            compare_sessions([one, other], [third])


def test_the_main_runs_are_compared_where_a_change_gave_them_another_title(tmp_path: Path) -> None:
    """Another optimizer, another title: the one step of ``init``, which the sessions share, stands for neither of them."""
    opened = []
    for title, step_ns in (("GradientDescent", 3_000_000), ("Adam", 4_000_000)):
        with recording(tmp_path / f"{title}.spool") as recorder:
            recorder.queue.add(((Tensor("init"),), (), None, 0, 50_000_000, get_ident(), None))
            for number in range(1, 301):
                at = number * 100_000_000
                recorder.queue.add(((Tensor(title),), (X,), None, at, at + step_ns, get_ident(), None))
            assert recorder.flush()
            recorder.save(str(tmp_path / f"{title}.tftrace"))
        opened.append(tftracer.open(tmp_path / f"{title}.tftrace"))
    before, after = opened
    found = before.compare(after)
    assert found.shifts["step"].shift == pytest.approx(1 / 3, rel=1e-6)
    assert found.run.startswith("GradientDescent") and "Adam" in found.run and "The runs differ" in found.warnings[0]
    shared = before.compare(after, run="init")
    assert shared.run == "init" and not any("The runs differ" in warning for warning in shared.warnings)


def test_the_same_session_twice_is_refused(files: dict[str, list[Path]], tmp_path: Path) -> None:
    """By its own id, whatever its file is called; a file of another tool by its path."""
    one, other = files["a"][0], files["longer"][0]
    copied, linked = shutil.copy(one, tmp_path / "copied.tftrace"), tmp_path / "linked.pb"
    step = ROOT / "tests/data/ps_worker0_tf2.21_cpu.pb"
    linked.symlink_to(step)
    for arguments in [
        (one, "--", one),
        (one, one, "--", other),
        (one, "--", other, other),
        (one, "--", copied),
        (step, "--", linked),
    ]:
        assert run("compare", *arguments).returncode == 2, arguments
    done = run("compare", one, "--", one)
    assert "is given twice" in done.stderr and "Traceback" not in done.stderr
    assert "hold the same session" in run("compare", one, "--", copied).stderr
    with tftracer.open(one) as session, tftracer.open(copied) as again, pytest.raises(UsageError, match="same session"):
        session.compare(again)


def test_files_of_traces_alone_are_compared_by_their_ops(tmp_path: Path) -> None:
    file = ROOT / "tests/data/ps_worker0_tf2.21_cpu.pb"
    done = run("compare", file, "--", shutil.copy(file, tmp_path / "after.pb"))
    assert done.returncode == 0 and "takes 4 sessions a side" in done.stdout and "step time" not in done.stdout


def test_a_file_called_compare_is_opened(tmp_path: Path) -> None:
    (tmp_path / "compare").write_bytes(RAW)
    assert "Budget" in run("compare", "--summary", folder=tmp_path).stdout
