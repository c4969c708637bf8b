"""Causes, evidence and doubts in words."""

from __future__ import annotations

import pytest
from made_stalls import BUSY, LOAD, LOADING, SAVER, UNKNOWN, a_period, a_save, a_stall

from tftracer.session.recorded_steps import RunHandle
from tftracer.session.slow import texts
from tftracer.session.slow.messages import host_trouble
from tftracer.slow.recorded import Cause

RUN = RunHandle("train", (), (), "")
LOADED = "load_batch() (train.py:88)"


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (Cause("gc", "", None, 0.9), "Python's garbage collection, 4 ms"),
        (Cause("machine", "", None, 0.9), "Its thread had no CPU: other processes or threads had them"),
        (Cause("disk", "", LOAD, 0.9), f"Its thread waited for a disk at {LOADED}"),
        (Cause("hook", "CheckpointSaverHook", SAVER, 0.9), "The hook CheckpointSaverHook (basic_session_run_hooks.py:620)"),
        (Cause("callback", "ModelCheckpoint", None, 0.9), "The Keras callback ModelCheckpoint"),
        (Cause("py_function", "", LOAD, 0.9), f"A Python function that TensorFlow calls: {LOADED}"),
        (Cause("wait", "", LOAD, 0.9), f"A wait without CPU (a sleep, a lock, the network) at {LOADED}"),
        (Cause("python", "", LOAD, 0.9), f"Python code at {LOADED}"),
        (Cause("unknown", "", LOAD, 0.2), f"Not known; most samples were at {LOADED}"),
        (Cause("unknown", "", None, None), "Not known: no measurement shows the cause"),
    ],
)
def test_a_cause(cause: Cause, text: str) -> None:
    assert texts.cause_text(cause, 0.004) == text


def test_evidence_says_what_was_measured_and_nothing_of_what_was_not() -> None:
    said = texts.evidence(a_stall(RUN, 5))
    assert said[0] == "The evidence for this cause covers 83% of the time."
    assert "Garbage collections on its thread took 4 ms." in said
    assert "It could have run and had no CPU for 88% of it." in said
    assert "Other processes used 1.8 of the machine's 2 CPUs." in said
    assert texts.evidence(a_stall(RUN, 5, host=UNKNOWN, gc_s=0.0, cause=Cause("unknown", "", None, None))) == []


def test_doubts() -> None:
    assert texts.uncertainty(a_stall(RUN, 5)) == ""
    late = texts.uncertainty(a_stall(RUN, 5, stacks=(LOADING._replace(late_samples=20),), sampled_s=0.1))
    assert late.startswith("The stacks cover 33% of it") and "40% of the samples came late" in late
    assert "No stack was sampled" in texts.uncertainty(a_stall(RUN, 5, stacks=(), sampled_s=0.0))
    assert "not known" in texts.uncertainty(a_save(RUN, 5))


def test_a_period() -> None:
    assert texts.period_text(a_period(RUN)) == (
        "Every 97th step: 310 ms before the step, CheckpointSaverHook (basic_session_run_hooks.py:620)"
    )
    unknown = Cause("unknown", "", None, None)
    assert texts.period_text(a_period(RUN, steps=102, inside=True, cause=unknown)) == "Every 102nd step: 310 ms inside the step"


@pytest.mark.parametrize("text", ["1st", "2nd", "3rd", "4th", "11th", "12th", "113th", "1,021st"])
def test_ordinals(text: str) -> None:
    assert texts.ordinal(int(text[:-2].replace(",", ""))) == text


def test_the_host_s_trouble_is_said_only_where_it_was_measured() -> None:
    assert host_trouble(BUSY) == "The training's thread had no CPU for 88% of the time"
    assert host_trouble(UNKNOWN) == "" and host_trouble(UNKNOWN._replace(run_queue_s=0.01, io_pressure_s=0.02)) == ""
    assert host_trouble(UNKNOWN._replace(io_pressure_s=0.5)) == "Processes waited for a disk for 50% of the time"
