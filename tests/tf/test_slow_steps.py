"""Slow steps of real trainings: seven kinds of stall inside steps and seven between them, each with its line and its cause."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.tf

SCRIPT = Path(__file__).with_name("slow_loop.py")
#: Between steps.
CAUSES = {
    "with_numpy": {"python"},
    "with_sort": {"python"},
    "with_gc": {"gc"},
    "with_sleep": {"wait"},
    "with_lock": {"wait"},
    "with_file": {"disk", "wait", "python"},  # as the machine's disk has it
    "with_condition": {"wait"},
}
#: On a machine that is busy with other work a stack may come too late, and the step may wait for a CPU for longest.
UNKNOWN = {"unknown", "machine"}


def is_unknown(stall: dict[str, Any]) -> bool:
    """Whether it says that its cause or its line is not known."""
    return stall["kind"] in UNKNOWN or bool(stall["doubt"] and not stall["function"] and stall["kind"] != "gc")


def told(mode: str, folder: Path) -> dict[str, Any]:
    """What the script says of its stalls, and the watch."""
    command = [sys.executable, str(SCRIPT), mode, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-4000:]
    said = next(line for line in done.stdout.splitlines() if line.startswith("TOLD "))
    report: dict[str, Any] = json.loads(said[5:])
    assert report["problems"] == [], report["problems"]
    return report


def check(mode: str, report: dict[str, Any]) -> None:
    stalls = {(stall["step"], stall["inside"]): stall for stall in report["stalls"]}
    assert len(report["plan"]) == 14
    unknown = 0
    for step, where, kind in report["plan"]:
        stall = stalls.get((step, where == "inside"))
        assert stall is not None, (step, where, kind, sorted(stalls))
        assert stall["seconds"] > 0.2, stall
        if is_unknown(stall):
            unknown += 1
            continue
        if where == "inside":
            causes = {"gc"} if kind == "with_gc" else {"py_function"}
        else:
            causes = CAUSES[kind] if mode != "keras" or kind == "with_gc" else {"callback"}
            named = "Stalling" if mode == "keras" and stall["kind"] == "callback" else ""
            assert kind == "with_gc" or stall["name"] == named, json.dumps(stall)
        assert stall["kind"] in causes, json.dumps(stall)
        # A collection may hold the GIL for so long that no stack of its step could be taken.
        if kind != "with_gc":
            assert (stall["function"] or kind, stall["file"] or SCRIPT.name) == (kind, SCRIPT.name), json.dumps(stall)
    assert unknown < 7, json.dumps(report["stalls"])


def test_in_a_session_each_is_caught_at_its_first_occurrence(tmp_path: Path) -> None:
    report = told("session", tmp_path)
    check("session", report)
    assert {stall["name"] for stall in report["stalls"] if stall["kind"] == "hook"} == {"CheckpointSaverHook"}


def test_in_a_loop_of_functions_each_is_caught_at_its_first_occurrence(tmp_path: Path) -> None:
    check("function", told("function", tmp_path))


def test_in_fit_each_is_caught_at_its_first_occurrence(tmp_path: Path) -> None:
    check("keras", told("keras", tmp_path))


def test_each_97th_step_is_found_explained_and_traced(tmp_path: Path) -> None:
    report = told("regular", tmp_path)
    slow = [stall for stall in report["stalls"] if stall["step"] % 97 == 0]
    assert [stall["step"] for stall in slow] == list(range(97, 97 * (len(slow) + 1), 97))
    known = [stall for stall in slow if not is_unknown(stall)]
    assert len(known) > len(slow) / 2, json.dumps(slow)
    assert {(stall["kind"], stall["function"]) for stall in known} == {("py_function", "python_function")}, json.dumps(known)
    assert {(steps, kind) for steps, _, kind in report["periods"]} == {(97, "py_function")}, report["periods"]
    traced = {trace[0]: trace[2] for trace in report["traces"] if trace[1] == "slow" and trace[0] % 97 == 0}
    assert traced and all(seconds > 0.35 for seconds in traced.values()), report["traces"]
    # All were traced ahead until a few were caught; of their traces the slowest are kept.
    assert set(traced) <= {stall["step"] for stall in slow if stall["traced"]}


MAY_CALL = """
import tensorflow as tf
from tftracer.slow.cause.frame_names import may_call_python
step = tf.function(lambda x: tf.reduce_sum(x * x))
step(tf.ones([3]))
before = may_call_python()
tf.function(lambda x: tf.numpy_function(lambda y: y, [x], tf.float32))(tf.ones([3]))
print(before, may_call_python())
"""


def test_it_is_known_that_a_training_has_given_tensorflow_no_python_function() -> None:
    done = subprocess.run([sys.executable, "-c", MAY_CALL], capture_output=True, text=True, timeout=500)
    assert done.stdout == "False True\n", done.stderr[-4000:]
