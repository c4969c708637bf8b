"""``tftracer roof``: measures this machine, keeps the figures for its sessions, and never runs beside a training."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from recording import recording, steps

from tftracer.roof.measure import CpuTimes, doubt_about, others_share
from tftracer.session.files.saved import open_session


def roof(home: Path, *arguments: str, spools: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HOME": str(home), "TMPDIR": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    environment["TFTRACER_SPOOL_DIR"] = str(spools or home / "spools")
    command = [sys.executable, "-m", "tftracer", "roof", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_a_machine_is_measured_and_its_sessions_know(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with recording(tmp_path) as before:
        steps(before, 1)
    assert before.session()["measured_roof"] is None and before.session()["processor"]

    done = roof(tmp_path, "--seconds", "0.01", "--json", "--save")
    assert done.returncode == 0 and "Saved as" in done.stderr, done.stderr
    measured = json.loads(done.stdout)
    (cpu,) = measured["devices"]
    rates = {rate["dtype"]: rate["flops_per_s"] for rate in cpu["rates"]}
    assert rates.keys() >= {"float32", "float64"} and cpu["kind"] == "CPU"
    assert all(1e6 < rate < 1e16 for rate in [*rates.values(), cpu["bytes_per_s"]])
    assert measured["processor"] in cpu["title"]

    with recording(tmp_path) as later:
        steps(later, 1, traced={1: (Path(__file__).parent / "data/conv_tf2.12_cpu.pb").read_bytes()})
        saved = str(tmp_path / "saved.tftrace")
        later.save(saved)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))  # a colleague's machine
    reopened = open_session(saved)
    assert reopened.session()["measured_roof"] == measured
    assert reopened.trace_context(1).measured_roof == measured
    assert open_session(before.session()["file"]).session()["measured_roof"] is None
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert open_session(before.session()["file"]).session()["measured_roof"] == measured  # measured after it ended


def test_nothing_is_measured_beside_a_training(tmp_path: Path) -> None:
    with recording(tmp_path / "spools") as recorder:
        steps(recorder, 1)
        done = roof(tmp_path, "--save")
    assert done.returncode == 1 and done.stdout == ""
    assert f"Process {os.getpid()} is being recorded" in done.stderr and not (tmp_path / "cache").exists()


def test_wrong_options_are_told(tmp_path: Path) -> None:
    for seconds in ("0", "-1", "nan", "61"):
        assert roof(tmp_path, "--seconds", seconds).returncode == 2


def test_a_busy_machine_makes_the_figures_doubtful() -> None:
    """Of 20 s of two cores in 10 s, we took 8 s and all together 15 s."""
    share = others_share(CpuTimes(100.0, 500.0, 1.0), CpuTimes(115.0, 520.0, 9.0))
    assert share == pytest.approx(0.35) and "35% of the processors" in doubt_about(share)
    assert doubt_about(others_share(CpuTimes(100.0, 500.0, 1.0), CpuTimes(108.5, 520.0, 9.0))) == ""
    assert others_share(CpuTimes(None, 0.0, 1.0), CpuTimes(None, 0.0, 9.0)) is None and doubt_about(None) == ""


def test_the_processors_time_is_known_here() -> None:
    before = CpuTimes.now()
    sum(range(10_000_000))
    after = CpuTimes.now()
    assert before.busy_s is not None and after.busy_s is not None
    assert after.own_s >= before.own_s and after.whole_s >= after.busy_s > 0
