"""Each example runs as a user would run it, and does what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tf.traced_scripts import RUN, outcome, sessions, start
from tf.traced_scripts import run as run_traced

import tftracer

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def run_example(tmp_path: Path, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "TFTRACER_SPOOL_DIR": str(tmp_path / "spool")}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize(
    ("name", "amount", "run", "steps"),
    [("keras_fit.py", ["--epochs", "2"], "fit: convnet", 40), ("custom_loop.py", ["--steps", "30"], "train_step", 30)],
)
def test_scripts_that_know_nothing_of_tftracer(tmp_path: Path, name: str, amount: list[str], run: str, steps: int) -> None:
    traced = run_traced(tmp_path, str(EXAMPLES / name), *amount)
    assert traced.code == 0, traced.errors
    (recorded,) = sessions(tmp_path)
    assert sum(count for title, count in recorded.items() if title.startswith(run)) == steps, recorded


@pytest.mark.parametrize(
    ("name", "amount", "answer"),
    [
        ("first.py", ["--epochs", "2"], "the Keras callback Journal"),
        ("second.py", ["--steps", "120"], "waits for the next element of a tf.data dataset"),
        ("third.py", ["--steps", "120"], "Ops in float64 take"),
    ],
)
def test_the_cause_of_each_exercise_is_named(tmp_path: Path, name: str, amount: list[str], answer: str) -> None:
    saved = tmp_path / "exercise.tftrace"
    script = str(EXAMPLES / "exercises" / name)
    command = [*RUN, "--trace", "2", "--from", "60", "--output", str(saved), script, *amount]
    ended = outcome(start(tmp_path, command))
    assert ended.code == 0, ended.errors
    summary = subprocess.run(
        [sys.executable, "-m", "tftracer", str(saved), "--summary"], capture_output=True, text=True, timeout=120, check=True
    )
    assert answer.lower() in " ".join(summary.stdout.split()).lower(), summary.stdout


def url_of(done: subprocess.CompletedProcess[str]) -> list[str]:
    return re.findall(r"http://127\.0\.0\.1:\d+/\?token=\S+", done.stdout + done.stderr)


def test_monitored_session_says_its_url_once(tmp_path: Path) -> None:
    done = run_example(tmp_path, "monitored_session.py", "--steps", "100")
    assert len(url_of(done)) == 1


def test_hook_inject_needs_no_hook(tmp_path: Path) -> None:
    done = run_example(tmp_path, "hook_inject.py", "--steps", "30")
    assert len(url_of(done)) == 1
    assert "loss" in done.stdout


def test_options_saves_a_session_that_load_session_opens(tmp_path: Path) -> None:
    run_example(tmp_path, "options.py", "--steps", "40", "--output", "saved.tftrace")
    done = run_example(tmp_path, "load_session.py", "saved.tftrace", "--no-wait")
    assert "saved.tftrace is open at http" in done.stdout
    summary = subprocess.run(
        [sys.executable, "-m", "tftracer", "saved.tftrace", "--summary"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert summary.returncode == 0, summary.stderr
    assert "MatMul" in summary.stdout or "Conv2D" in summary.stdout


@pytest.mark.parametrize(
    ("name", "amount", "runs"),
    [
        ("keras_callback.py", ["--epochs", "2"], {"fit: linear": 20}),
        ("own_steps.py", ["--steps", "30"], {"train": 30, "validate": 3}),
    ],
)
def test_scripts_that_make_a_server(tmp_path: Path, name: str, amount: list[str], runs: dict[str, int]) -> None:
    assert len(url_of(run_example(tmp_path, name, *amount))) == 1
    (recorded,) = sessions(tmp_path)
    assert recorded == runs


@pytest.mark.parametrize("optimizer", ["adam", "adagrad"])
def test_slow_to_fast_saves_traces_of_the_same_run(tmp_path: Path, optimizer: str) -> None:
    run_example(tmp_path, "slow_to_fast.py", "--optimizer", optimizer, "--steps", "20", "--save", "saved.tftrace")
    with tftracer.open(tmp_path / "saved.tftrace") as saved:
        assert saved.runs()["title"][0] == "train (feeding words, labels)"
        assert len(saved.traces()) == 5


def test_timeline_writes_a_page(tmp_path: Path) -> None:
    done = run_example(tmp_path, "timeline.py", "--output", "page.html")
    step = float(re.search(r"step\s+([\d.]+) ms", done.stdout).group(1))
    assert 0 < step < 60_000
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
