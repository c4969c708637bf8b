"""Causes, evidence and doubts in words."""

from __future__ import annotations

from typing import Any

import pytest
from made_stalls import BUSY, LOAD, LOADING, SAVER, UNKNOWN, a_period, a_stall

from tftracer.contract.stalls import PartKind
from tftracer.run_handle import RunHandle
from tftracer.slow.answer import texts
from tftracer.slow.answer.evidence import evidence
from tftracer.slow.answer.messages import checkpoint_mark, host_trouble, stall_message
from tftracer.slow.watch_results import OF_TRACER, Cause, FoldedStack, Frame, OtherCause, Part, Stall

RUN = RunHandle("train", (), (), "")
LOADED = "load_batch() (train.py:88)"


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (Cause("input", "", LOAD, 0.9), f"Waited for the next element of a dataset at {LOADED}"),
        (Cause("checkpoint", "Saver.save", LOAD, 0.9), f"A checkpoint: Saver.save, called at {LOADED}"),
        (Cause("checkpoint", "Saver.save", None, 0.9), "A checkpoint: Saver.save"),
        (Cause("gc", "", None, 0.9), "Python's garbage collection, 4 ms"),
        (Cause("gc", "", LOAD, 0.9), f"Python's garbage collection, 4 ms, at {LOADED}"),
        (Cause("machine", "", None, 0.9), "Its thread had no CPU: other processes or threads had them"),
        (Cause("disk", "", LOAD, 0.9), f"Waited for a disk at {LOADED}"),
        (Cause("hook", "CheckpointSaverHook", SAVER, 0.9), "The hook CheckpointSaverHook (basic_session_run_hooks.py:620)"),
        (Cause("callback", "ModelCheckpoint", None, 0.9), "The Keras callback ModelCheckpoint"),
        (Cause("py_function", "", LOAD, 0.9), f"A Python function that TensorFlow calls: {LOADED}"),
        (Cause("wait", "", LOAD, 0.9), f"Waited at {LOADED}"),
        (Cause("wait", "", None, 0.9), "Waited, at an unknown line"),
        (Cause("python", "", LOAD, 0.9), f"Python code at {LOADED}"),
        (Cause("python", "the turn of an epoch", None, 0.9), "The turn of an epoch of fit"),
        (Cause("unknown", "", LOAD, 0.2), f"Not known; most samples were at {LOADED}"),
        (Cause("unknown", "", None, None), "Not known: no measurement shows the cause"),
    ],
)
def test_a_cause(cause: Cause, text: str) -> None:
    assert texts.cause_text(a_stall(RUN, 5, cause=cause, stacks=())) == text


SAVE = Frame("train.py", 12, "save", "", False)


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (Cause("python", "", SAVE, 0.3), "about 90 ms at save() (train.py:12)"),
        (Cause("hook", "Saver", SAVE, 0.3), "about 90 ms in the hook Saver (train.py:12)"),
        (Cause("lock", "thread loader", None, 0.3), "Python's lock was held for about 90 ms by thread loader"),
        (Cause("checkpoint", "Saver.save", SAVE, 0.3), "a checkpoint for 90 ms: Saver.save, called at save() (train.py:12)"),
        (Cause("input", "", None, 0.3), "90 ms of waiting for the next element of a dataset"),
        (Cause("stopped", "", None, 0.3), "about 90 ms in which the process was stopped"),
        (Cause("other_run", "evaluate: net, 9 steps", None, 0.3), "90 ms in steps of another run: evaluate: net, 9 steps"),
    ],
)
def test_another_cause_is_named_too_with_its_own_seconds(cause: Cause, said: str) -> None:
    stall = a_stall(RUN, 5, cause=Cause("wait", "", LOAD, 0.9), stacks=(), others=(OtherCause(cause, 0.09),))
    assert texts.cause_text(stall) == f"Waited at {LOADED}; besides, {said}"
    unknown = stall._replace(cause=Cause("unknown", "", None, None), doubt="No stack was read.")
    assert texts.cause_text(unknown) == f"Not known for most of it; {said}"


def test_the_line_that_calls_fit_is_not_named_beside_a_callbacks() -> None:
    main = Frame("train.py", 5, "main", "", False)
    fit, reset = (Frame(f"/lib/site-packages/keras/src/{name}.py", 9, name, "", True) for name in ("fit", "reset"))
    stacks = [FoldedStack("MainThread", (main, fit, frame), 9, took) for frame, took in ((LOAD, 1.0), (reset, 0.9))]
    stall = a_stall(RUN, 5, cause=Cause("wait", "", LOAD, 0.9), stacks=tuple(stacks))
    assert texts.cause_text(stall) == f"Waited at {LOADED}"


def test_evidence_says_what_was_measured_and_nothing_of_what_was_not() -> None:
    said = evidence(a_stall(RUN, 5))
    assert said[0] == "The Python code of its thread explains 83% of the time beyond the usual."
    assert "Garbage collections on its thread took 4 ms." in said
    assert "It could have run and had no CPU for 88% of it." in said
    assert "Other processes used 1.8 of the machine's 2 CPUs." in said
    assert evidence(a_stall(RUN, 5, host=UNKNOWN, gc_s=0.0, cause=Cause("unknown", "", None, None))) == []


def test_a_step_without_a_cpu_says_where_its_thread_was() -> None:
    stall = a_stall(RUN, 5, cause=Cause("machine", "", None, 0.9), stacks=(), parts=(Part("no_cpu", 0.29, 0.0, ""),), place=LOAD)
    assert texts.cause_text(stall) == f"Its thread had no CPU for about 290 ms at {LOADED}: other processes or threads had them"
    assert stall_message(1, stall, 0.0)["place"] == ""  # it is no cause


def test_evidence_of_code_says_how_long_it_had_no_cpu() -> None:
    cause = Cause("python", "", LOAD, 0.83)
    parts = (Part("no_cpu", 0.25, 0.0, ""), Part("python", 0.04, 0.0, ""))
    first, *_ = evidence(a_stall(RUN, 5, cause=cause, parts=parts))
    assert ", including 250 ms without a CPU, explains 97% of the time beyond the usual." in first  # 290 of 298 ms


def test_a_callback_beside_another_cause_does_not_explain_its_time_nor_all_that_had_no_cpu() -> None:
    """A judge read "This callback, including 139 ms without a CPU, explains 100%" of a step with two callbacks."""
    parts = (Part("wait", 0.15, 0.0, ""), Part("no_cpu", 0.13, 0.0, ""))
    others = (OtherCause(Cause("callback", "Bookkeeper", LOAD, 0.5), 0.149),)
    first, second, *_ = evidence(a_stall(RUN, 5, cause=Cause("callback", "Uplink", LOAD, 0.9), parts=parts, others=others))
    assert first == "This callback explains 50% of the time beyond the usual."
    assert second == "Its thread had no CPU for 130 ms of it."  # which of the callbacks had none is not known


def test_a_checkpoint_of_a_hook_is_marked_where_the_script_s_own_line_ran_in_it() -> None:
    stall = a_stall(RUN, 5, cause=Cause("hook", "CheckpointSaverHook", LOAD, 0.9), stacks=(LOADING,))
    mark = checkpoint_mark(stall_message(1, stall, 0.0))
    assert mark is not None and mark.text == "CheckpointSaverHook, 300 ms"
    assert checkpoint_mark(stall_message(1, a_stall(RUN, 5), 0.0)) is None
    by_clock = checkpoint_mark(stall_message(1, a_stall(RUN, 5, cause=Cause("checkpoint", "Saver.save", LOAD, 0.9)), 0.0))
    assert by_clock is not None and by_clock.text == "Checkpoint, 300 ms"


def test_the_time_of_a_lock_is_that_of_its_holder() -> None:
    """A judge read "held for about 110 ms by thread helper; besides, about 37 ms by a thread of tftracer" of 74 + 37 ms."""
    parts = (Part("lock", 0.2, 0.0, "thread helper"), Part("lock", 0.08, 0.0, OF_TRACER))
    text = texts.cause_text(a_stall(RUN, 5, cause=Cause("lock", "thread helper", None, 0.9), parts=parts))
    assert text == "Python's lock was held for about 200 ms by thread helper"


def with_part(cause: Cause, kind: PartKind, what: str = "", **changes: Any) -> Stall:
    return a_stall(RUN, 5, cause=cause, stacks=(), parts=(Part(kind, 0.25, 0.0, what),), **changes)


@pytest.mark.parametrize(
    ("stall", "text"),
    [
        (
            with_part(Cause("lock", "thread serializer, in dumps() (encoder.py:200)", None, 0.9), "lock"),
            "Python's lock was held for about 250 ms by thread serializer, in dumps() (encoder.py:200)",
        ),
        (with_part(Cause("lock", "", None, 0.9), "lock"), "Python's lock was held for about 250 ms"),
        (
            with_part(Cause("retrace", "x is (9, 64), was (8, 64)", LOAD, 0.9), "retrace", inside=True),
            f"train was traced anew: x is (9, 64), was (8, 64), called at {LOADED}",
        ),
        (
            with_part(Cause("retrace", "evaluate: x is (9, 64), was (8, 64)", None, 0.9), "retrace"),
            "evaluate was traced anew: x is (9, 64), was (8, 64)",
        ),
        (
            with_part(Cause("retrace", "evaluate: net: it was called for the first time", LOAD, 0.9), "retrace"),
            f"evaluate: net was traced: it was called for the first time, called at {LOADED}",
        ),
        (
            with_part(Cause("other_run", "evaluate: 100 steps, 2.3 s", LOAD, 0.9), "other_run"),
            f"Steps of another run: evaluate: 100 steps, 2.3 s, called at {LOADED}",
        ),
        (
            with_part(Cause("tensorflow", "computed", None, 0.9), "tensorflow", "the process used 1.9 CPUs"),
            "TensorFlow or its input pipeline computed longer: the process used 1.9 CPUs",
        ),
        (
            with_part(Cause("tensorflow", "computed", LOAD, 0.9), "tensorflow", "the process used 1.9 CPUs"),
            f"TensorFlow computed longer at {LOADED}: the process used 1.9 CPUs",
        ),
        (with_part(Cause("stopped", "", None, 0.9), "stopped"), "The process was stopped for at least 250 ms"),
        (
            with_part(Cause("machine", "", None, 0.9), "no_cpu"),
            "Its thread had no CPU for about 250 ms: other processes or threads had them",
        ),
        (a_stall(RUN, 5), f"Python code at {LOADED}, in sort (numpy/_core/fromnumeric.py)"),
    ],
)
def test_a_cause_with_what_was_measured_of_it(stall: Stall, text: str) -> None:
    assert texts.cause_text(stall) == text


@pytest.mark.parametrize(
    ("stall", "whose", "words"),
    [
        (with_part(Cause("machine", "", None, 0.9), "no_cpu"), "own", "Its thread had no CPU"),
        (with_part(Cause("machine", "", None, 0.9), "tensorflow"), "any", "Threads of the process had no CPU"),
        (
            with_part(Cause("tensorflow", "computed", None, 0.9), "tensorflow"),
            "",
            "TensorFlow or its input pipeline computed longer",
        ),
    ],
)
def test_whose_threads_had_no_cpu(stall: Stall, whose: str, words: str) -> None:
    assert texts.without_cpu(stall) == stall_message(1, stall, 0.0)["without_cpu"] == whose
    assert texts.cause_text(stall).startswith(words)


def test_bytes_that_were_counted_over_a_longer_time_are_not_the_slow_step_s() -> None:
    host = UNKNOWN._replace(seconds=1.8, read_bytes=254_000_000)
    assert not [text for text in evidence(a_stall(RUN, 50, host=host)) if "254 MB" in text]
    host = host._replace(seconds=0.35)
    assert "This process read 254 MB from disks." in evidence(a_stall(RUN, 50, host=host))


def test_with_parts_no_evidence_repeats_what_they_say() -> None:
    said = evidence(with_part(Cause("machine", "", None, 0.9), "no_cpu"))
    assert not any("Its thread ran" in each or "could have run" in each or "Garbage" in each for each in said)


def test_the_doubt_is_the_watch_s_own() -> None:
    message = stall_message(1, a_stall(RUN, 5, stacks=(), doubt="Stacks were not read."), 0.0)
    assert message["uncertainty"] == "Stacks were not read."


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
    assert host_trouble(BUSY) == ("The training's thread had no CPU", 0.88)
    assert host_trouble(UNKNOWN) == ("", None) == host_trouble(UNKNOWN._replace(run_queue_s=0.01, io_pressure_s=0.02))
    assert host_trouble(UNKNOWN._replace(io_pressure_s=0.5)) == ("Processes waited for a disk", 0.5)


def test_where_slow_steps_were_dropped_a_period_s_own_count_is_told_as_about() -> None:
    every = {211: texts.Rhythm(1, 1.0)}
    told = [texts.group_text(["hook"], "Saver", every, 301, 290, 301, is_exact) for is_exact in (True, False)]
    assert told == [f"Every 211th step: the hook Saver ({about}290 of 301 times)" for about in ("", "about ")]
