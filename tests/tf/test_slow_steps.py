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
    for step, where, kind in report["plan"]:
        stall = stalls.get((step, where == "inside"))
        assert stall is not None, (step, where, kind, sorted(stalls))
        assert stall["seconds"] > 0.2, stall
        if where == "inside":
            causes = {"gc"} if kind == "with_gc" else {"py_function"}
        else:
            causes = CAUSES[kind] if mode != "keras" or kind == "with_gc" else {"callback"}
            assert kind == "with_gc" or stall["name"] == ("Stalling" if mode == "keras" else ""), stall
        assert stall["kind"] in causes, stall
        # A collection may hold the GIL for so long that no stack of its step could be taken.
        if kind != "with_gc":
            assert (stall["function"], stall["file"]) == (kind, SCRIPT.name), stall


def test_in_a_session_each_is_caught_at_its_first_occurrence(tmp_path: Path) -> None:
    report = told("session", tmp_path)
    check("session", report)
    assert [stall["name"] for stall in report["stalls"] if stall["kind"] == "hook"] == ["CheckpointSaverHook"]


def test_in_a_loop_of_functions_each_is_caught_at_its_first_occurrence(tmp_path: Path) -> None:
    check("function", told("function", tmp_path))


def test_in_fit_each_is_caught_at_its_first_occurrence(tmp_path: Path) -> None:
    check("keras", told("keras", tmp_path))


def test_each_97th_step_is_found_explained_and_traced_within_400_steps(tmp_path: Path) -> None:
    report = told("regular", tmp_path)
    slow = [stall for stall in report["stalls"] if stall["step"] % 97 == 0]
    assert [(stall["step"], stall["kind"], stall["function"]) for stall in slow] == [
        (step, "py_function", "<lambda>") for step in (97, 194, 291, 388)
    ]
    assert [97, 3, "py_function"] in report["periods"]
    assert [388, "slow"] in [trace[:2] for trace in report["traces"]], report["traces"]
    assert slow[-1]["traced"] and next(trace[2] for trace in report["traces"] if trace[0] == 388) > 0.35
