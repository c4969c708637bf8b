"""Scripts as people write them under ``tftracer run``: output, exit code and traceback as without it, every step in a session."""

from __future__ import annotations

import importlib.util
import re
import signal
import sys
from pathlib import Path

import pytest
import tensorflow as tf
from job_page import wait_for
from tf.traced_scripts import RUN, SCRIPTS, Page, outcome, run_both, sessions, start

pytestmark = pytest.mark.tf

HAS_ESTIMATOR = tuple(int(part) for part in tf.__version__.split(".")[:2]) <= (2, 15)
HAS_TENSORBOARD = importlib.util.find_spec("tensorboard") is not None
CLASSIC, CLASSIC_RUN = ("estimator", "train, Mean") if HAS_ESTIMATOR else ("session", "total, AssignAddVariableOp (feeding x)")


def test_keras_with_arguments(tmp_path: Path) -> None:
    traced = run_both(tmp_path, "command_line.py", "--epochs", "2", "--port", "5", "-m", "big")
    assert sessions(tmp_path) == [{"fit: big": 8, "evaluate: big": 4, "predict: big": 2}]
    assert re.search(r"^tftracer: watch and trace this training at http://127\.0\.0\.1:\d+/", traced.errors, re.MULTILINE)
    (file,) = (tmp_path / "spool").glob("*.tftrace")
    assert f"tftracer: the session is in {file} (open it with: tftracer {file})" in traced.errors
    assert not list((tmp_path / "temporary").glob("tftracer-run-*"))


def test_a_main_guard_its_own_source_input_and_a_last_word(tmp_path: Path) -> None:
    traced = run_both(tmp_path, "main_guard.py", "--stay", "--", "x", typed="a line\n")
    assert traced.code == 1
    assert "a line" in traced.output
    assert "nothing left to do" in traced.errors
    assert sessions(tmp_path) == [{"train_step": 10}]


def test_a_module_with_relative_imports(tmp_path: Path) -> None:
    run_both(tmp_path, "-m", "vision.train", "-m", "x")
    assert sessions(tmp_path) == [{"train_step (8,2) (8,1)": 8}]


def test_a_folder_with_a_main_file(tmp_path: Path) -> None:
    run_both(tmp_path, "vision", "a", "--b", cwd=SCRIPTS)
    assert sessions(tmp_path) == [{"step": 3}]


def test_workers_started_with_subprocess(tmp_path: Path) -> None:
    traced = run_both(tmp_path, "workers.py")
    assert sessions(tmp_path) == [{"train_step": 10}, {"train_step": 10}]
    assert len(re.findall(r"^tftracer:   workers\.py, process \d+: /.*\.tftrace$", traced.errors, re.MULTILINE)) == 2


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_multiprocessing(tmp_path: Path, method: str) -> None:
    traced = run_both(tmp_path, "pool.py", method)
    assert sessions(tmp_path) == [{"step": 6}, {"step": 6}]
    (name,) = re.findall(r"^tftracer:   (\w+)-\d+, process \d+: /.*\.tftrace$", traced.errors, re.MULTILINE)
    assert name == f"{method.capitalize()}Process"


def test_no_thread_of_ours_imports_a_module(tmp_path: Path) -> None:
    """A process that is forked meanwhile, by a data loader for example, would wait for that module for ever."""
    script = start(tmp_path, [*RUN, "imports_in_threads.py"], SCRIPTS)
    page = Page.of(script)
    (run,) = wait_for(lambda: page("api/session")["runs"])
    page(f"api/runs/{run['id']}/trace", {"steps": 1})
    trace = wait_for(lambda: next((trace for trace in page("api/session")["runs"][0]["traces"] if trace["headline"]), None))
    wait_for(lambda: page("api/stalls")["groups"])
    for path in (f"traces/{trace['id']}/verdict", f"traces/{trace['id']}/memory", "ledger", "memory-growth", "input-pipelines"):
        page(f"api/{path}")
    output, errors = script.communicate("\n")
    assert (script.returncode, output) == (0, "\n"), output + errors


def test_processes_forked_after_tensorflow_was_imported(tmp_path: Path) -> None:
    """Each has a session of its own if it trains; those that do not leave the parent's alone."""
    traced = run_both(tmp_path, "forks_late.py")
    assert sessions(tmp_path) == [{"step": 3}, {"step": 6}]
    assert traced.errors.count("the session is in") == 1


def test_a_script_that_fails(tmp_path: Path) -> None:
    plain = start(tmp_path, [sys.executable, "fails.py"], SCRIPTS)
    traced = outcome(start(tmp_path, [*RUN, "fails.py"], SCRIPTS))
    without = outcome(plain)
    assert (traced.code, traced.output) == (without.code, without.output) == (1, "training\n")
    assert traced.traceback == without.traceback
    assert "ValueError: the validation folder is empty" in traced.traceback
    assert sessions(tmp_path) == [{"fit: net": 16}]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="up to Python 3.10, raise puts the wrapper's frame back")
@pytest.mark.parametrize("kind", ["function", "variable", "keras", "optimizer", "batch", "session", "callable"])
def test_an_error_of_tensorflow_has_the_traceback_and_the_text_that_it_has_without(kind: str, tmp_path: Path) -> None:
    plain = start(tmp_path, [sys.executable, "fails_in_tensorflow.py", kind], SCRIPTS)
    traced = outcome(start(tmp_path, [*RUN, "fails_in_tensorflow.py", kind], SCRIPTS))

    def text(errors: str) -> str:
        lines = [line for line in errors[errors.index("Traceback (most") :].splitlines() if not line.startswith("tftracer: ")]
        # A function's name ends in a count of tensors and functions, in which looks into input pipelines have their part.
        return re.sub(r"__autograph_generated_file[^.]*|(?<=__inference_)\w+", "", "\n".join(lines)).rstrip()

    assert text(traced.errors) == text(outcome(plain).errors)
    assert "tftracer" not in text(traced.errors)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_by_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    both = [start(tmp_path, [*command, "until_stopped.py"], SCRIPTS) for command in ([sys.executable], RUN)]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
    plain, traced = (outcome(process) for process in both)
    assert traced.code == plain.code == -number
    if number == signal.SIGINT:
        assert traced.traceback.splitlines()[-1] == plain.traceback.splitlines()[-1] == "KeyboardInterrupt"
        ((_, steps),) = sessions(tmp_path)[0].items()
        assert steps > 20


def test_mixed_precision_and_a_strategy(tmp_path: Path) -> None:
    run_both(tmp_path, "mixed.py")
    assert sessions(tmp_path) == [{"fit: half": 8, "fit: mirrored": 2}]


def test_tensorboards_callback(tmp_path: Path) -> None:
    """Its profile is taken; where TensorBoard is missing it fails as it does without tftracer."""
    traced = run_both(tmp_path, "tensorboard_callback.py")
    assert (traced.code, traced.output) == ((0, "1 profile\n") if HAS_TENSORBOARD else (1, "")), traced.errors
    assert sessions(tmp_path) == [{"fit: net": 16 if HAS_TENSORBOARD else 1}]


def test_a_gradient_tape_loop(tmp_path: Path) -> None:
    run_both(tmp_path, "gradient_tape.py")
    expected = {"train_step (16,4) (16)": 6, "train_step (12,4) (12)": 2, "test_step (16,4) (16)": 4}
    assert sessions(tmp_path) == [expected]


def test_an_estimator_or_a_monitored_session(tmp_path: Path) -> None:
    run_both(tmp_path, "classic.py", CLASSIC)
    (runs,) = sessions(tmp_path)
    assert runs[CLASSIC_RUN] == 12, runs


def test_two_workers_that_train_together(tmp_path: Path) -> None:
    run_both(tmp_path, "two_workers.py")
    assert sessions(tmp_path) == [{"train_step": 8}, {"train_step": 8}]
