"""A slow turn as a sum of seconds: its parts, its cause, its line, and what is not said."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tftracer
from tftracer.run_handle import RunHandle
from tftracer.slow.cause.blamed_code import (
    COMPILED_FUNCTIONS,
    PYTHON_FUNCTIONS,
    functions_of_busiest_thread,
    is_in_step,
    shared_line,
    without_steps,
    without_tracer,
)
from tftracer.slow.cause.explain_slow_turn import Explained, explain
from tftracer.slow.cause.observed import LockHolder, Observed, Span
from tftracer.slow.cause.why_unknown import (
    COLLECTED_SOMEWHERE,
    FUNCTION_MAY_HAVE_WAITED,
    LOOPS_OWN,
    MAY_HAVE_WAITED,
    NO_COUNTERS,
    NO_QUEUES,
    NO_STACK,
    NOT_MEASURED,
    PARTLY_NO_CPU,
    SHORT,
    TOO_FEW,
)
from tftracer.slow.watch.slow_turn import OtherSteps, Save, SlowTurn
from tftracer.slow.watch_results import OF_TRACER, FoldedStack, Frame

MS = 1_000_000
TF = "/usr/lib/python3/site-packages/"
MAIN = Frame("train.py", 10, "main", "", False)
LOAD = Frame("data.py", 20, "load", "", False)
NUMPY = Frame(TF + "numpy/core/sort.py", 5, "sort", "", True)
RUN = Frame(TF + "tensorflow/python/client/session.py", 1477, "_call_tf_sessionrun", "", True)
SAVE = Frame(TF + "tensorflow/python/training/saver.py", 99, "after_run", "CheckpointSaverHook", True)
EPOCH = Frame("callbacks.py", 7, "on_epoch_end", "MyLogger", False)
SCRIPT_OPS = Frame(TF + PYTHON_FUNCTIONS, 150, "__call__", "", True)
FIT = Frame(TF + "keras/src/trainer.py", 300, "fit", "", True)
RESET = Frame(TF + "keras/src/metrics.py", 30, "reset_state", "", True)
EAGER_OP = Frame(TF + "tensorflow/python/eager/execute.py", 53, "quick_execute", "", True)
ENCODE = Frame("/usr/lib/python3/json/encoder.py", 200, "encode", "", True)


TRAIN_THREAD = Frame("data.py", 77, "watch_config", "", False)


def stack(*frames: Frame, seconds: float = 0.2, thread: str = "MainThread") -> FoldedStack:
    return FoldedStack(thread, frames, 40, seconds)


def span(length: float, *stacks: FoldedStack, cpu: float = 0.0, queue: float = 0.0, process: float = 0.0, **more: Any) -> Span:
    given = {"stopped_s": 0.0, "disk_s": 0.0, "process_queue_s": 0.0, "samples": len(stacks) * 2} | more
    called = functions_of_busiest_thread((*stacks, *given.get("other_stacks", ())))
    given.setdefault("functions_s", sum(stack.seconds for stack in called))  # measured as well as seen
    given.setdefault("process_min_s", process)
    return Span(length, stacks, cpu_s=cpu, queue_s=queue, process_s=process, **given)


def explained(
    before: float = 0.0,
    inside: float = 0.005,
    *,
    between: Span | None = None,
    within: Span | None = None,
    usual_process_queue: float | None = None,
    usual_lock_wait: float | None = None,
    others_share: float | None = None,
    may_call_python: bool = True,
    runs_script: bool = False,
    usual_lines: frozenset[Frame] = frozenset(),
    title: str = "fit: net",
    has_python: bool = False,
    **turn: Any,
) -> Explained:
    """Of a turn that usually takes 10 ms, 5 of them inside of its step, and 1 ms of CPU time."""
    given: dict[str, Any] = {"other_runs": (), "retraced": "", "tracer_ns": 0} | turn
    start, step = 1_000 * MS, 1_000 * MS + int(before * 1e9)
    run = RunHandle(title, (), (), "", has_python=has_python)
    end = step + int(inside * 1e9)
    given = {"usual_ns": 10 * MS, "usual_inside_ns": 5 * MS, "limit_ns": 30 * MS} | given
    slow = SlowTurn(run, 50, 50, 7, start, step, end, is_traced=False, **given)
    usual: dict[str, Any] = {"usual_cpu": 0.1, "usual_process": 0.1, "usual_process_queue": usual_process_queue}
    usual["usual_lock_wait"] = usual_lock_wait
    usual |= {"others_share": others_share, "may_call_python": may_call_python, "usual_lines": usual_lines}
    usual |= {"runs_script": runs_script}
    seen = Observed(between or span(before), within or span(inside), **usual)
    found = explain(slow, seen)
    assert sum(part.seconds for part in found.parts) == pytest.approx(slow.length_ns * 1e-9), found.parts
    return found


def test_what_the_tracer_does_between_steps_is_nobody_s_line() -> None:
    ours = str(Path(tftracer.__file__).parent) + "/"
    wait = Frame(threading.__file__, 300, "wait", "", True)
    reads = stack(MAIN, Frame(ours + "capture/functions/function_calls.py", 99, "_call", "", True), wait)
    in_step = stack(MAIN, Frame(ours + "capture/functions/function_calls.py", 99, "_call", "", True), RUN)
    of_user = stack(MAIN, LOAD, wait)
    kept = without_tracer([reads, in_step, of_user])
    assert [each.frames for each in kept] == [in_step.frames, of_user.frames]
    assert [is_in_step(each) for each in kept] == [True, False]
    assert without_steps([in_step, of_user]) == (of_user,)  # of a time without a step


def test_the_parts_add_up_to_the_turn_and_the_largest_excess_is_the_cause() -> None:
    found = explained(0.4, between=span(0.4, stack(MAIN, LOAD, seconds=0.4), cpu=0.02))
    assert [part.kind for part in found.parts][:2] == ["wait", "python"]
    assert (found.cause.kind, found.cause.frame, found.doubt) == ("wait", LOAD, "")


def test_python_that_ran_is_python_also_where_it_waited_for_a_busy_machine_most_of_the_time() -> None:
    stacks = stack(MAIN, LOAD, NUMPY, seconds=0.8)
    assert explained(0.8, between=span(0.8, stacks, cpu=0.75)).cause[:3] == ("python", "", LOAD)
    found = explained(0.8, between=span(0.8, stacks, cpu=0.1, queue=0.7))
    assert found.cause[:3] == ("python", "", LOAD) and found.parts[0].kind == "no_cpu"


def test_code_that_ran_where_it_was_let_run_did_not_wait() -> None:
    """Without a CPU most of the time, threads wait for each other, too."""
    code = stack(MAIN, LOAD, seconds=2.0)
    assert explained(2.0, between=span(2.0, code, cpu=0.32, queue=1.25)).cause[:3] == ("python", "", LOAD)
    assert explained(2.0, between=span(2.0, code, cpu=0.05, queue=0.4)).cause[:3] == ("wait", "", LOAD)


def test_collections_without_a_cpu_leave_the_code_that_they_struck_its_time() -> None:
    copies = stack(MAIN, LOAD, seconds=2.05)
    found = explained(2.05, between=span(2.05, copies, cpu=1.02, queue=1.03, gc_s=1.02))
    assert found.cause[:3] == ("python", "", LOAD)


def test_a_turn_that_did_no_more_than_usual_and_had_no_cpu_is_the_machines() -> None:
    found = explained(0.3, between=span(0.3, stack(MAIN, LOAD, seconds=0.3), cpu=0.001, queue=0.29))
    assert (found.cause.kind, found.cause.frame, found.place) == ("machine", None, LOAD)
    assert explained(0.3, between=span(0.3, stack(NUMPY), queue=0.29)).place is None
    hook = explained(0.3, between=span(0.3, stack(MAIN, SAVE, seconds=0.3), cpu=0.001, queue=0.29)).place
    assert hook is not None and hook.owner == "CheckpointSaverHook"


def test_three_helpers_below_one_line_name_that_line() -> None:
    called = [Frame("data.py", line, name, "", False) for line, name in ((1, "a"), (2, "b"), (3, "c"))]
    helpers = [stack(MAIN, LOAD, frame, seconds=0.1) for frame in called]
    assert explained(0.3, between=span(0.3, *helpers, cpu=0.3)).cause.frame == LOAD
    lines = [stack(MAIN, LOAD._replace(line=line), seconds=0.1) for line in (20, 21, 22)]
    assert shared_line(lines).frame == LOAD  # one function, whichever of its lines


ESTIMATE = Frame(TF + "tensorflow_estimator/python/estimator/estimator.py", 1522, "_train_with_estimator_spec", "", True)


@pytest.mark.parametrize(("loop", "title"), [(FIT, "fit: net"), (FIT, "eager"), (ESTIMATE, "Momentum")])
def test_a_line_that_calls_the_library_that_runs_the_loop_is_not_the_cause(loop: Frame, title: str) -> None:
    """It was named, as the script's nearest line. But every sample of such a training has it, slow or not: it told nothing, and
    stood where callbacks of the script and the library's own code shared the time."""
    found = explained(0.3, between=span(0.3, stack(MAIN, loop, RESET, seconds=0.3), cpu=0.3), title=title)
    assert (found.cause[:3], found.doubt) == (("python", "", RESET), "")  # a function of its own: its slow steps are a group
    spread = [stack(MAIN, loop, RESET._replace(function=name), seconds=0.1) for name in "abc"]
    found = explained(0.3, between=span(0.3, *spread, cpu=0.3), title=title)
    assert (found.cause[:3], found.doubt) == (("python", "", None), LOOPS_OWN)
    on_batch, other = (Frame("train.py", line, name, "", False) for line, name in ((30, "log"), (40, "draw")))
    called = [stack(MAIN, loop, frame, seconds=seconds) for frame, seconds in ((on_batch, 0.12), (other, 0.1))]
    mixed = span(0.3, *called, stack(MAIN, loop, RESET, seconds=0.08), cpu=0.3)
    found = explained(0.3, between=mixed, title=title)
    assert (found.cause[:3], found.doubt) == (("python", "", None), "No line of code was running for half of the time.")
    below = span(0.3, stack(MAIN, loop, RESET, on_batch, seconds=0.2), stack(MAIN, loop, RESET, seconds=0.1), cpu=0.3)
    assert explained(0.3, between=below, title=title).cause.frame == on_batch


def test_a_line_between_two_calls_of_fit_is_named_and_not_the_calls() -> None:
    calls, load, save = (MAIN._replace(line=line) for line in (10, 12, 13))
    shared = span(0.9, stack(calls, FIT, seconds=0.4), stack(load, NUMPY, seconds=0.3), stack(save, seconds=0.2), cpu=0.9)
    assert explained(0.9, between=shared).cause.frame == load


def test_a_wait_for_input_has_no_line_where_a_library_asks_for_it() -> None:
    asks = Frame(TF + "tensorflow/python/data/ops/iterator_ops.py", 810, "__next__", "", True)
    found = explained(0.3, between=span(0.3, stack(MAIN, FIT, RESET, asks, seconds=0.3)), input_ns=300 * MS)
    assert (found.cause[:3], found.doubt) == (("input", "", None), "")


def test_an_evaluation_that_is_the_loop_is_no_line_either() -> None:
    evaluate = FIT._replace(function="evaluate")
    inside = span(0.3, stack(MAIN, evaluate, RESET, seconds=0.3), cpu=0.3)
    assert explained(0.3, between=inside, title="evaluate: net").cause.frame == RESET
    assert explained(0.3, between=inside, title="train_step").cause.frame == MAIN


def test_a_line_of_a_loop_of_the_scripts_that_trains_another_model_is_named_and_a_callbacks_in_fit() -> None:
    steps = (OtherSteps("fit: other", 20, 100 * MS, ""),)
    trains = span(0.9, stack(MAIN, LOAD, FIT, RESET, seconds=0.9), cpu=0.8)
    assert explained(0.9, between=trains, other_runs=steps, title="train_step").cause.frame == LOAD
    in_fit = span(0.9, stack(MAIN, FIT, LOAD, FIT, RESET, seconds=0.9), cpu=0.8)
    assert explained(0.9, between=in_fit, other_runs=steps).cause.frame == LOAD
    evaluated = (OtherSteps("evaluate: other", 20, 800 * MS, "", 1_010 * MS, 1_890 * MS),)
    asked = span(0.9, stack(MAIN, FIT, LOAD, FIT._replace(function="evaluate"), RESET, seconds=0.9), cpu=0.8)
    assert explained(0.9, between=asked, other_runs=evaluated).cause[::2] == ("other_run", LOAD)
    short = (OtherSteps("evaluate: other", 60, 30 * MS, "", 1_850 * MS, 1_890 * MS),)
    prepared = explained(0.9, between=asked, other_runs=short).cause
    assert prepared.kind == "other_run" and prepared.name == "evaluate: other: 60 steps, 30 ms; 860 ms more in the same call"


def test_a_lock_that_was_held_where_no_line_ran_is_not_said_of_a_line() -> None:
    loops = [stack(MAIN, FIT, RESET._replace(function=name), seconds=0.1) for name in "abc"]
    found = explained(0.3, between=span(0.3, *loops, watch_delay_s=0.3))
    assert (found.cause[:3], "this line" in found.doubt) == (("wait", "", None), False)
    mine = LockHolder("MainThread", "training", ())
    assert explained(0.3, between=span(0.3, *loops, watch_delay_s=0.3, holders=(mine,) * 3)).doubt == LOOPS_OWN


def test_hooks_and_callbacks_are_named_by_their_class() -> None:
    found = explained(0.3, between=span(0.3, stack(MAIN, SAVE, NUMPY, seconds=0.3)))
    assert (found.cause.kind, found.cause.name, found.cause.frame) == ("hook", "CheckpointSaverHook", SAVE)
    found = explained(0.3, between=span(0.3, stack(MAIN, EPOCH, LOAD, seconds=0.3)))
    assert (found.cause.kind, found.cause.name, found.cause.frame) == ("callback", "MyLogger", LOAD)


def test_steps_of_another_run_are_named_and_those_of_a_hook_by_the_hook() -> None:
    others = (OtherSteps("evaluate: net", 100, 900 * MS, ""),)
    found = explained(1.0, between=span(1.0, stack(MAIN, RUN, seconds=1.0)), other_runs=others)
    assert (found.cause.kind, found.cause.name) == ("other_run", "evaluate: net: 100 steps, 900 ms")
    found = explained(1.0, between=span(1.0, stack(MAIN, SAVE, RUN, seconds=1.0)), other_runs=others)
    assert (found.cause.kind, found.cause.name) == ("hook", "CheckpointSaverHook")
    half = (stack(MAIN, SAVE, RUN, seconds=0.5), stack(MAIN, LOAD, RUN, seconds=0.5))
    found = explained(1.0, between=span(1.0, *half), other_runs=others)
    assert found.cause.kind == "other_run", "misread: a hook that runs it is in nearly all samples"


def test_code_that_ran_beside_an_evaluation_keeps_its_cpu_time() -> None:
    evaluated = OtherSteps("evaluate: net", 20, 440 * MS, "", 1_000 * MS, 1_450 * MS)
    asks = Frame(TF + "keras/src/trainer.py", 500, "evaluate", "", True)
    samples = (stack(MAIN._replace(line=12), asks, RUN, seconds=0.45), stack(MAIN, LOAD, seconds=0.35))
    both = span(0.8, *samples, cpu=0.36, clocked=Span(0.45, cpu_s=0.01, queue_s=0.0))
    found = explained(0.8, between=both, other_runs=(evaluated,))
    assert {part.kind: round(part.seconds, 2) for part in found.parts if part.kind in ("python", "wait")} == {"python": 0.35}
    assert found.cause.kind == "other_run"
    assert [(other.cause.kind, other.cause.frame) for other in found.others] == [("python", LOAD)]


def test_the_spans_that_clocks_measure_do_not_overlap_and_have_no_gaps() -> None:
    run, usual_and_limit = RunHandle("fit: net", (), (), ""), (10 * MS, 5 * MS, 30 * MS)
    turn = SlowTurn(run, 50, 50, 7, 0, 2_000 * MS, 2_010 * MS, 0, *usual_and_limit, (), "", False)
    others = (
        OtherSteps("evaluate: net", 9, 300 * MS, "", 100 * MS, 600 * MS),  # all time of an evaluation counts
        OtherSteps("augment", 40, 400 * MS, "", 0, 2_000 * MS),  # its steps are far apart
        OtherSteps("read", 1, 20 * MS, "", 1_900 * MS, 1_920 * MS),  # too short
    )
    saves = (Save("Checkpoint.save", 500 * MS, 900 * MS),)
    spans = turn._replace(other_runs=others, saves=saves).clocked
    assert spans == [(100 * MS, 600 * MS), (600 * MS, 900 * MS)]


def test_a_run_that_each_turn_has_exceeds_its_usual_time_alone_and_may_have_lacked_a_cpu() -> None:
    augment = OtherSteps("augment (8,3)", 1, 500 * MS, "", 1_010 * MS, 1_510 * MS, usual_ns=100 * MS)
    calm = span(0.55, stack(MAIN, RUN, seconds=0.5), cpu=0.01, process=0.5)
    found = explained(0.55, between=calm, usual_ns=110 * MS, other_runs=(augment,))
    (part,) = [each for each in found.parts if each.kind == "other_run"]
    assert (part.seconds, part.usual_s, found.cause.kind) == (0.5, 0.1, "other_run")
    crowded = span(0.55, stack(MAIN, RUN, seconds=0.5), cpu=0.01, process=0.1, process_queue_s=0.45)
    found = explained(0.55, between=crowded, usual_process_queue=0.05, usual_ns=110 * MS, other_runs=(augment,))
    assert found.cause.kind == "machine"


def test_a_stop_that_was_seen_in_part_is_no_wait() -> None:
    found = explained(0.63, between=span(0.63, stack(MAIN, LOAD, seconds=0.6), cpu=0.02, stopped_s=0.27))
    assert (found.cause.kind, found.cause.frame) == ("stopped", None)


def test_a_python_function_in_the_step_of_another_run_is_named_by_its_line() -> None:
    others = (OtherSteps("augment (8,3)", 1, 750 * MS, "", 1_010 * MS, 1_760 * MS),)
    called = stack(SCRIPT_OPS, LOAD, seconds=0.7, thread="Dummy-3")
    between = span(0.8, stack(MAIN, RUN, seconds=0.8), other_stacks=(called,))
    assert explained(0.8, between=between, other_runs=others).cause[:3] == ("py_function", "", LOAD)
    alone = replace(between, other_stacks=())
    assert explained(0.8, between=alone, other_runs=others).cause.kind == "other_run"


def test_a_call_that_was_traced_anew_says_why() -> None:
    found = explained(0.0, 0.8, retraced="argument 1 changed")
    assert (found.cause.kind, found.cause.name, found.doubt) == ("retrace", "argument 1 changed", "")
    found = explained(0.9, other_runs=(OtherSteps("step (9,64)", 1, 880 * MS, "argument 1 changed"),))
    assert (found.cause.kind, found.cause.name) == ("retrace", "step (9,64): argument 1 changed")


def test_a_call_that_was_traced_anew_is_named_by_the_line_that_called_it() -> None:
    call = Frame(TF + COMPILED_FUNCTIONS, 833, "__call__", "", True)
    body = Frame("model.py", 40, "train_step", "", False)
    traced = stack(MAIN, LOAD, call, body, NUMPY, seconds=0.8)
    found = explained(0.0, 0.8, within=span(0.8, traced), retraced="argument x changed")
    assert (found.cause.kind, found.cause.frame) == ("retrace", LOAD)
    others = (OtherSteps("step (9,64)", 1, 780 * MS, "argument x changed"),)
    assert explained(0.8, between=span(0.8, traced), other_runs=others).cause.frame == LOAD


def test_pythons_lock_is_blamed_on_the_thread_that_was_seen_with_it() -> None:
    holder = LockHolder("serializer", "other", (MAIN, ENCODE))
    held = span(1.9, stack(MAIN, LOAD, seconds=1.9), watch_delay_s=1.8, holders=(holder, holder, None))
    found = explained(1.9, between=held)
    assert (found.cause.kind, found.cause.name) == ("lock", "thread serializer, in main() (train.py:10)")
    ended = replace(holder, thread="")  # before its name was read
    found = explained(1.9, between=replace(held, holders=(ended, ended)))
    assert found.cause.name == "another thread, in main() (train.py:10)"
    free = replace(held, holders=(holder, None, None))  # the watch had no CPU meanwhile
    assert explained(1.9, between=free).cause[:3] == ("wait", "", LOAD)
    nobodys = replace(held, holders=(None, None), lock_wait_s=1.8)
    assert explained(1.9, between=nobodys).cause[:3] == ("unknown", "", LOAD)
    itself = replace(holder, whose="training")
    own = replace(held, holders=(itself,), cpu_s=1.85)
    assert explained(1.9, between=own).cause[:3] == ("python", "", LOAD)
    in_c = explained(1.9, between=replace(held, holders=(itself,)))  # a C library's call that sleeps with the lock
    assert in_c.cause[:3] == ("wait", "", LOAD) and not in_c.doubt
    assert in_c.parts[0].what == "with Python's lock, so that no other thread could run Python"
    assert not any(part.what for part in explained(1.9, between=free).parts if part.kind == "wait")
    slept = explained(1.9, between=replace(held, holders=(itself,), waits_for="in a sleep"))
    assert slept.parts[0].what == "in a sleep, with Python's lock, so that no other thread could run Python"
    unproven = replace(held, holders=())
    waited = explained(1.9, between=unproven)
    assert waited.cause.kind == "wait" and "a thread that was not seen" in waited.doubt
    ran = replace(unproven, process_s=1.7)  # another thread, which only one that holds the lock can
    assert explained(1.9, between=ran).cause[:2] == ("lock", "")


def test_a_python_function_that_waits_for_pythons_lock_is_not_the_cause() -> None:
    generator = stack(SCRIPT_OPS, LOAD, seconds=1.0, thread="pool")
    other = LockHolder("ranker", "other", (MAIN,))
    waits = span(1.0, stack(RUN, seconds=1.0), watch_delay_s=0.9, holders=(other,) * 3, other_stacks=(generator,))
    assert explained(0.0, 1.0, within=waits).cause[:2] == ("lock", "thread ranker, in main() (train.py:10)")
    own = LockHolder("pool", "other", (SCRIPT_OPS, LOAD))
    assert explained(0.0, 1.0, within=replace(waits, holders=(own,) * 3)).cause[::2] == ("py_function", LOAD)


def test_a_wait_says_what_for_unless_the_thread_waited_for_other_things_as_well() -> None:
    waited = span(1.0, stack(MAIN, LOAD, seconds=1.0), waits_for="for a pipe")
    assert explained(1.0, between=waited).parts[0][::3] == ("wait", "for a pipe")
    found = explained(1.0, between=waited, other_runs=(OtherSteps("evaluate", 1, 400_000_000, "", 0, 400_000_000),))
    assert [part.what for part in found.parts if part.kind == "wait"] == [""]


def test_a_thread_that_was_seen_to_wait_for_pythons_lock_waited_for_it_whoever_held_it_each_time() -> None:
    one, other, third = (LockHolder(name, "other", (MAIN,)) for name in ("one", "other", "third"))
    taken_in_turn = span(0.5, stack(MAIN, LOAD, seconds=0.5), cpu=0.05, lock_wait_s=0.4, holders=(one, other, third, one))
    assert explained(0.5, between=taken_in_turn).cause[:2] == ("lock", "several threads, in main() (train.py:10)")
    most = replace(taken_in_turn, holders=(one, other, one))
    assert explained(0.5, between=most).cause.name == "thread one, in main() (train.py:10)"
    returning = span(0.5, stack(MAIN, RUN, seconds=0.5), lock_wait_s=0.4, holders=(one,))  # from TensorFlow
    assert explained(0.0, 0.5, within=returning).cause[:2] == ("lock", "thread one, in main() (train.py:10)")


def test_code_is_not_said_to_wait_for_pythons_lock_that_it_was_never_seen_to_want() -> None:
    holder = LockHolder("serializer", "other", (MAIN, ENCODE))
    sleeps = span(1.9, stack(MAIN, LOAD, seconds=1.9), watch_delay_s=1.8, lock_wait_s=0.0, holders=(holder, holder))
    found = explained(1.9, between=sleeps)
    assert found.cause[:3] == ("wait", "", LOAD) and not found.doubt


def test_of_a_turn_that_ran_at_one_line_and_waited_at_another_neither_is_said_of_the_wrong_one() -> None:
    lines = Frame("train.py", 41, "plant", "", False), LOAD, Frame("data.py", 30, "upload", "", False)
    ran, waited = stack(MAIN, *lines[:2], seconds=0.33), stack(MAIN, lines[0], lines[2], seconds=0.27)
    found = explained(0.6, between=span(0.6, ran, waited, cpu=0.28))
    assert found.cause[:3] == ("wait", "", lines[0])
    mostly = explained(0.6, between=span(0.6, ran, waited, cpu=0.1))
    assert mostly.cause[:3] == ("wait", "", LOAD)


def test_a_wait_after_code_that_ran_is_the_cause_and_the_code_another_cause() -> None:
    parse, wait = Frame("data.py", 202, "parse_boxes", "", False), Frame("data.py", 323, "wait_for_peer", "", False)
    stacks = stack(MAIN._replace(line=211), wait, seconds=0.375), stack(MAIN, parse, ENCODE, seconds=0.295)
    found = explained(0.67, between=span(0.67, *stacks, cpu=0.34, gc_s=0.15))
    assert found.cause[:3] == ("wait", "", wait)
    assert [other.cause[:3] for other in found.others] == [("python", "", parse)]


def test_a_single_sample_at_a_usual_line_names_no_line() -> None:
    usual = frozenset({MAIN})
    short: dict[str, Any] = {"usual_ns": 15 * MS, "usual_inside_ns": 3 * MS}
    only = explained(0.1, between=span(0.1, FoldedStack("MainThread", (MAIN,), 1, 0.05), cpu=0.09), usual_lines=usual, **short)
    assert (only.cause[:3], only.doubt[:16]) == (("python", "", None), "Its stacks were ")
    other = FoldedStack("MainThread", (MAIN._replace(line=30), LOAD), 1, 0.06)
    both = span(0.2, FoldedStack("MainThread", (MAIN,), 1, 0.1), other._replace(seconds=0.1), cpu=0.19)
    assert explained(0.2, between=both, usual_lines=usual, **short).cause[:3] == ("python", "", LOAD)
    twice = span(0.1, FoldedStack("MainThread", (MAIN,), 2, 0.1), cpu=0.09)
    assert explained(0.1, between=twice, usual_lines=usual, **short).cause[:3] == ("python", "", MAIN)
    elsewhere = explained(0.1, between=span(0.1, other, cpu=0.09), usual_lines=usual, **short)
    assert elsewhere.cause[:3] == ("python", "", LOAD)


def test_a_usual_line_is_no_other_cause() -> None:
    """A judge read "besides, about 82 ms at main()", the line of the loop's usual sleep of 12 ms."""
    stacks = stack(MAIN, SAVE, NUMPY, seconds=0.5), stack(MAIN._replace(line=30), seconds=0.1)
    known = explained(0.6, between=span(0.6, *stacks, cpu=0.5), usual_lines=frozenset({MAIN._replace(line=30)}))
    assert known.cause.name == "CheckpointSaverHook" and not known.others
    assert explained(0.6, between=span(0.6, *stacks, cpu=0.5)).others


def test_a_python_function_beside_a_hook_that_waits_in_the_step_is_not_the_cause() -> None:
    """A judge read "A Python function that TensorFlow calls: decode()" of steps in which a hook waited for a socket."""
    ask = Frame("netio.py", 36, "before_run", "AuditHook", False)
    decode = (stack(SCRIPT_OPS, LOAD, seconds=0.14, thread="Dummy-1"),)
    found = explained(0.005, 0.16, within=span(0.16, stack(MAIN, ask, seconds=0.15), other_stacks=decode, cpu=0.01))
    assert (found.cause.kind, found.cause.name) == ("hook", "AuditHook")


def test_a_hook_that_waited_for_most_of_a_step_is_the_cause_though_threads_of_tensorflow_had_no_cpu() -> None:
    """A judge read "Threads of the process had no CPU" of a step of 230 ms with 131 ms in a hook's socket."""
    ask = Frame("netio.py", 36, "before_run", "AuditHook", False)
    within = span(0.23, stack(MAIN, ask, seconds=0.131), cpu=0.001, queue=0.065, process=0.023, process_queue_s=0.25)
    found = explained(0.005, 0.23, within=within)
    assert (found.cause.kind, found.cause.name) == ("hook", "AuditHook")
    assert found.cause.share == pytest.approx(0.58, abs=0.01)
    assert explained(0.005, 0.23, within=replace(within, queue_s=0.18)).cause.kind == "machine"


def test_a_hook_and_a_python_function_are_named_beside_threads_that_had_no_cpu() -> None:
    """A judge read "Threads of the process had no CPU", "explains 37%": a hook had run for 240 of 604 ms."""
    runs = Frame("jobtools.py", 314, "after_run", "AuditHook", False)
    within = span(0.6, stack(MAIN, runs, seconds=0.24), cpu=0.01, queue=0.0, process=0.01, process_queue_s=0.25)
    found = explained(0.005, 0.6, within=replace(within, process_min_s=0.0))
    assert "AuditHook" in [found.cause.name, *(other.cause.name for other in found.others)]
    decode = (stack(SCRIPT_OPS, LOAD, seconds=0.234, thread="Dummy-1"),)
    slept = span(0.483, other_stacks=decode, queue=0.196, process=0.005, process_queue_s=0.5)
    function = explained(0.0, 0.483, within=slept)
    assert function.cause[:3] == ("py_function", "", LOAD)


def test_tensorflow_did_not_compute_for_the_time_of_a_python_function_that_it_called() -> None:
    """A judge read "TensorFlow or its input pipeline computed longer; besides, 96 ms in decode()": all was decode()."""
    decode = (stack(SCRIPT_OPS, LOAD, seconds=0.096, thread="Dummy-1"),)
    within = span(0.22, stack(MAIN, RUN, seconds=0.22), other_stacks=decode, process=0.13, process_queue_s=0.02)
    found = explained(0.0, 0.22, within=within)
    assert found.cause.kind == "unknown"
    assert [(other.cause.kind, other.cause.frame) for other in found.others] == [("py_function", LOAD)]
    worked = replace(within, process_s=0.4, process_min_s=0.4)
    assert explained(0.0, 0.22, within=worked).cause[:2] == ("tensorflow", "computed")


def test_tensorflow_did_not_compute_while_another_thread_held_pythons_lock_in_a_step_with_python_functions() -> None:
    """A judge read "TensorFlow or its input pipeline computed longer: the process used 0.8 CPUs": of the other thread."""
    sorts = span(0.59, stack(MAIN, RUN, seconds=0.59), process=0.5, other_holder_share=0.9, lock_readings=12, lock_wait_s=0.0)
    found = explained(0.005, 0.59, within=sorts)
    assert (found.cause.kind, found.doubt) == ("unknown", FUNCTION_MAY_HAVE_WAITED)
    assert explained(0.005, 0.59, within=sorts, may_call_python=False).cause[:2] == ("tensorflow", "computed")


def test_a_measured_python_function_needs_no_stack() -> None:
    seen = span(0.5, stack(MAIN, RUN, seconds=0.1), functions_s=0.45, function=LOAD)
    found = explained(0.0, 0.5, within=seen)
    assert (found.cause.kind, found.cause.frame) == ("py_function", LOAD)


def test_a_function_that_waited_behind_a_buffer_is_not_the_cause_of_a_step_that_computed() -> None:
    """A judge read "A Python function that TensorFlow calls: source()", which slept for later steps; the step computed."""
    seen = span(0.5, stack(MAIN, RUN, seconds=0.5), process=0.48, functions_s=0.45, functions_cpu_s=0.01, function=LOAD)
    found = explained(0.0, 0.5, within=seen)
    assert found.cause[:2] == ("tensorflow", "computed") and found.others == ()
    computed = replace(seen, functions_cpu_s=0.45)  # the function computed
    assert explained(0.0, 0.5, within=computed).cause.kind == "py_function"
    waited = replace(seen, process_s=0.03, process_min_s=0.03)
    assert explained(0.0, 0.5, within=waited).cause.kind == "py_function"


def test_functions_that_ran_as_usual_did_not_make_a_step_slow() -> None:
    """A function of an input pipeline always runs, ahead of the steps: its stacks show it in each slow step."""
    ahead = (stack(SCRIPT_OPS, LOAD, seconds=0.4, thread="Dummy-1"),)
    worked = span(0.5, stack(MAIN, RUN, seconds=0.5), other_stacks=ahead, process=0.45, functions_s=0.02, function=LOAD)
    assert explained(0.0, 0.5, within=worked).cause[:2] == ("tensorflow", "computed")


def test_where_a_step_called_no_python_function_few_stacks_suffice_to_tell_that_it_computed() -> None:
    """On a busy machine, a third of the slow steps that computed longer were "not known", though no function was called."""
    few = span(0.5, stack(MAIN, RUN, seconds=0.1), process=0.45, functions_s=0.0)
    assert explained(0.0, 0.5, within=few).cause[:2] == ("tensorflow", "computed")


def test_a_stop_within_a_checkpoint_is_no_part_of_the_checkpoint() -> None:
    """ "The hook CheckpointSaverHook explains 100%", of a save of 3.2 s in which the process was stopped for 0.8 s."""
    save = Save("CheckpointSaverHook.save", 1_000 * MS, 4_000 * MS)
    found = explained(3.2, between=span(3.2, stack(MAIN, SAVE, seconds=3.0), stopped_s=0.8), saves=(save,))
    assert found.cause.name == "CheckpointSaverHook"
    assert [(other.cause.kind, round(other.seconds, 2)) for other in found.others] == [("stopped", 0.8)]


def test_a_stop_of_a_quarter_of_the_time_is_told_of_a_step_that_is_not_known() -> None:
    within = span(1.6, stack(MAIN, RUN, seconds=0.3), queue=0.42, stopped_s=0.71, functions_s=None)
    found = explained(0.0, 1.6, within=within)
    assert [other.cause.kind for other in found.others] == ["stopped"] or found.cause.kind == "stopped"


def test_a_thread_that_had_no_cpu_did_not_wait_for_a_thread_of_the_tracer() -> None:
    """ "Python's lock was held for 160 ms by a thread of tftracer", where the thread had no CPU for 318 of 320 ms."""
    ours = LockHolder("tftracer-watch", "tracer", ())
    stacks = stack(MAIN, RUN, seconds=0.3)
    within = span(0.32, stacks, cpu=0.002, queue=0.318, lock_wait_s=0.16, lock_readings=6, holders=(ours, ours))
    assert explained(0.0, 0.32, within=within).cause.kind == "machine"


def test_a_wait_in_a_queue_does_not_hold_pythons_lock() -> None:
    """ "Python's lock was held meanwhile, by what this line calls", of a wait in queue.get()."""
    waits = Frame("/usr/lib/python3.11/threading.py", 327, "wait", "", True)
    seen = span(0.5, stack(MAIN, LOAD, waits, seconds=0.5), watch_delay_s=0.4)
    found = explained(0.5, between=seen)
    assert (found.cause.kind, found.cause.frame, found.doubt) == ("wait", LOAD, "")


def test_where_a_thread_had_no_cpu_is_not_told_by_few_samples() -> None:
    edge = span(0.1, stack(MAIN, LOAD, seconds=0.005), cpu=0.001, queue=0.08)
    found = explained(0.1, between=edge)
    assert (found.cause.kind, found.place) == ("machine", None)


def test_the_hook_whose_objects_were_collected_is_named() -> None:
    copies = Frame("hooks.py", 86, "after_run", "RollbackHook", False)
    found = explained(0.8, between=span(0.8, stack(MAIN, copies, LOAD, seconds=0.8), cpu=0.8, gc_s=0.7))
    assert found.cause.kind == "gc" and found.cause.frame == LOAD._replace(owner="RollbackHook")


def test_steps_of_an_evaluation_are_all_counted_also_the_one_that_was_traced() -> None:
    traced = OtherSteps("evaluate: net", 1, 60 * MS, "it was called for the first time", 1_000 * MS, 1_060 * MS)
    usual = OtherSteps("evaluate: net", 39, 677 * MS, "", 1_060 * MS, 1_740 * MS)
    found = explained(0.75, between=span(0.75, stack(MAIN, RUN, seconds=0.7), cpu=0.5), other_runs=(traced, usual))
    assert "evaluate: net: 40 steps, 737 ms" in [part.what for part in found.parts]


def test_time_without_a_cpu_in_collections_and_in_another_run_is_told() -> None:
    collected = span(0.85, stack(MAIN, LOAD, seconds=0.85), cpu=0.17, queue=0.68, gc_s=0.83)
    found = explained(0.85, between=collected).parts[0]
    assert (found.kind, found.what) == ("gc", "664 ms of it without a CPU")
    steps = OtherSteps("eval", 300, 774 * MS, "", 1_010 * MS, 1_785 * MS)
    clocked = Span(0.775, cpu_s=0.3, queue_s=0.431)
    other = explained(
        0.8, between=span(0.8, stack(MAIN, RUN, seconds=0.8), cpu=0.3, queue=0.44, clocked=clocked), other_runs=(steps,)
    )
    assert other.parts[0].what == "eval: 300 steps, 774 ms; 431 ms of it without a CPU"


def test_a_line_that_ran_for_most_of_what_it_waited_did_not_wait_on_a_busy_machine() -> None:
    """The wait is what the other measurements leave."""
    busy = span(0.156, stack(MAIN, LOAD, seconds=0.156), cpu=0.057, queue=0.037)
    assert explained(0.156, between=busy).cause[:3] == ("python", "", LOAD)
    waited = span(0.156, stack(MAIN, LOAD, seconds=0.156), cpu=0.03, queue=0.02)
    assert explained(0.156, between=waited).cause[:3] == ("wait", "", LOAD)


def test_a_wait_for_pythons_lock_in_which_nobody_was_seen_with_it_is_put_down_to_no_thread() -> None:
    """A script with one thread: it may have had no CPU right after the lock was let go."""
    found = explained(
        0.0, 0.05, within=span(0.05, stack(MAIN, RUN, seconds=0.05), process=0.07, lock_wait_s=0.04, lock_readings=9)
    )
    assert (found.cause.kind, {part.kind for part in found.parts}) == ("unknown", {"unknown", "tensorflow"})
    found = explained(0.05, between=span(0.05, stack(MAIN, LOAD, seconds=0.05), process=0.07, lock_wait_s=0.05, lock_readings=9))
    assert found.cause.kind == "unknown"


def test_a_thread_that_was_seen_with_the_lock_did_not_wait_for_another_one() -> None:
    """A script with one thread: "Python's lock was held for 38.6 ms", by nobody."""
    own = (LockHolder("MainThread", "training", (MAIN,)),)
    within = span(0.088, stack(MAIN, RUN, seconds=0.088), queue=0.03, lock_wait_s=0.05, lock_readings=1, holders=own)
    assert explained(0.0, 0.088, within=within).cause.kind != "lock"


def test_whether_a_thread_waited_for_a_lock_that_others_had_is_not_known_of_too_few_readings() -> None:
    few: dict[str, Any] = {"lock_wait_s": 0.0, "lock_readings": 1, "other_holder_share": 1.0}
    found = explained(0.08, between=span(0.08, stack(MAIN, LOAD, seconds=0.08), **few))
    assert found.cause.kind == "unknown" and found.doubt == MAY_HAVE_WAITED
    found = explained(0.0, 0.1, within=span(0.1, stack(MAIN, RUN, seconds=0.1), **few))
    assert found.cause.kind == "unknown" and found.doubt == MAY_HAVE_WAITED
    free = few | {"other_holder_share": 0.2}
    assert explained(0.08, between=span(0.08, stack(MAIN, LOAD, seconds=0.08), **free)).cause[:3] == ("wait", "", LOAD)


def test_code_that_worked_more_beside_threads_that_always_run_python_is_the_cause_and_not_the_lock() -> None:
    others = (LockHolder("spins", "other", (MAIN,)),)
    worked = span(0.6, stack(MAIN, LOAD, seconds=0.6), cpu=0.2, lock_wait_s=0.4, holders=others)
    assert explained(0.6, between=worked, usual_lock_wait=0.5).cause[:3] == ("python", "", LOAD)
    assert explained(0.6, between=worked, usual_lock_wait=0.0).cause.kind == "lock"


def test_a_little_more_work_does_not_explain_a_long_wait() -> None:
    """Of a turn of 4.48 s, 4.33 s were a wait for Python's lock, and 0.02 s Python code: it was called Python code."""
    others = (LockHolder("serializer", "other", (MAIN,)),)
    waited = span(4.48, stack(MAIN, LOAD, seconds=4.48), cpu=0.02, queue=0.13, lock_wait_s=4.33, holders=others)
    assert explained(4.48, between=waited, usual_lock_wait=0.5).cause.kind == "lock"
    had_no_cpu = span(4.0, stack(MAIN, LOAD, seconds=4.0), cpu=0.05, queue=3.95)
    assert explained(4.0, between=had_no_cpu).cause.kind == "machine"


def test_a_wait_beside_the_tracer_that_holds_pythons_lock_is_not_known_and_is_no_lack_of_a_cpu() -> None:
    """A judge read "Its thread had no CPU for 214 ms"; Linux counted 74 ms."""
    ours = LockHolder("tftracer-watch", "tracer", ())
    stacks = stack(MAIN, LOAD, seconds=2.0)
    found = explained(2.0, between=span(2.0, stacks, cpu=0.4, queue=0.4, watch_delay_s=1.1, holders=(ours, ours)))
    assert (found.cause.kind, found.parts[0].kind) == ("unknown", "unknown")


def test_a_step_meanwhile_another_thread_held_pythons_lock_is_not_known_and_says_by_whom() -> None:
    holder = LockHolder("serializer", "other", (MAIN, ENCODE))
    found = explained(0.0, 1.9, within=span(1.9, stack(MAIN, RUN, seconds=1.9), watch_delay_s=1.8, holders=(holder,)))
    assert found.cause.kind == "unknown" and "by thread serializer, in main() (train.py:10): the step may" in found.doubt


def test_of_a_step_that_is_not_known_the_wait_for_pythons_lock_is_told_if_it_was_measured() -> None:
    """A step of 1.2 s waited 0.55 s for a thread that searched with a regular expression; the rest is unknown."""
    holder = LockHolder("scanner", "other", (MAIN, LOAD))
    within = span(1.2, process=0.7, process_queue_s=0.9, lock_wait_s=0.55, lock_readings=9, holders=(holder,), functions_s=None)
    found = explained(0.0, 1.2, within=within)
    assert found.cause.kind == "unknown" and found.doubt
    assert [(other.cause.kind, round(other.seconds, 2)) for other in found.others] == [("lock", 0.55)]
    little = explained(0.0, 1.2, within=replace(within, lock_wait_s=0.2))
    assert (little.cause.kind, little.others) == ("unknown", ())


def test_a_python_function_of_tensorflows_that_held_pythons_lock_is_the_cause_where_its_result_was_waited_for() -> None:
    holder = LockHolder("", "other", (SCRIPT_OPS, LOAD))
    within = span(0.6, watch_delay_s=0.55, holders=(holder, holder, None))
    assert explained(0.0, 0.6, within=within).cause[:3] == ("py_function", "", LOAD)
    waits = span(0.6, stack(MAIN, ELEMENT, seconds=0.5), watch_delay_s=0.55, holders=(holder,))
    assert explained(0.6, between=waits, input_ns=590 * MS).cause[:3] == ("py_function", "", LOAD)
    elsewhere = replace(waits, stacks=(stack(MAIN, seconds=0.5),))
    assert explained(0.6, between=elsewhere).cause.kind == "lock"


def test_garbage_collection_comes_before_the_line_that_it_struck() -> None:
    found = explained(0.3, between=span(0.3, stack(MAIN, LOAD, seconds=0.3), cpu=0.3, gc_s=0.28))
    assert (found.cause.kind, found.cause.frame) == ("gc", LOAD)
    found = explained(0.3, between=span(0.3, stack(MAIN, LOAD, ENCODE, seconds=0.3), cpu=0.3, gc_s=0.2))
    assert (found.cause.kind, found.cause.frame) == ("python", LOAD)  # it makes the garbage
    inside = span(2.9, stack(MAIN, LOAD, seconds=2.9), cpu=2.9, gc_s=2.8)
    assert explained(0.0, 2.9, within=inside, has_python=True).cause[:3] == ("gc", "", LOAD), "an eager loop runs Python"


def test_garbage_of_a_python_function_that_tensorflow_calls_has_its_line() -> None:
    parses = stack(SCRIPT_OPS, LOAD, seconds=0.5, thread="other")
    within = span(0.9, stack(MAIN, RUN, seconds=0.9), gc_s=0.52)
    found = explained(0.0, 0.9, within=replace(within, other_stacks=(parses,)))
    assert found.cause[:3] == ("gc", "", LOAD) and not found.doubt
    by_thread = replace(within, other_stacks=(stack(TRAIN_THREAD, seconds=0.5, thread="watcher"), parses), collected_by="watcher")
    assert explained(0.0, 0.9, within=by_thread).cause.frame == TRAIN_THREAD
    unknown = explained(0.0, 0.9, within=within)
    assert unknown.cause.frame is None and unknown.doubt == "The line that made the collected objects is not known."


def test_a_short_garbage_collection_is_not_the_cause_where_the_machine_was_busy() -> None:
    found = explained(0.6, between=span(0.6, stack(MAIN, LOAD, seconds=0.6), cpu=0.1, queue=0.5, gc_s=0.06))
    assert found.cause[:3] == ("python", "", LOAD)


@pytest.mark.parametrize(("thread", "text"), [("tftracer-watch", "on a thread of tftracer"), ("loader", "on thread loader")])
def test_a_collection_on_another_thread_during_a_step_says_on_which(thread: str, text: str) -> None:
    """A judge read "Python's garbage collection, 3.05 s" of a collection that a thread of tftracer ran."""
    found = explained(0.005, 3.5, within=span(3.5, process=3.2, gc_s=3.05, collected_by=thread))
    assert found.cause.kind == "gc" and found.parts[0].what == text


def test_code_without_a_cpu_beside_a_wait_elsewhere_is_not_said_to_wait() -> None:
    """A judge read "Waited at flush_report(), for a socket": it computed without a CPU, and another function waited."""
    sends = Frame("train.py", 526, "push_metrics", "", False)
    stacks = stack(MAIN, LOAD, seconds=1.314), stack(MAIN, sends, seconds=0.469)
    found = explained(1.784, between=span(1.784, *stacks, cpu=0.147, queue=0.991, lock_wait_s=0.324, holders=(None,) * 8))
    assert found.cause[:3] == ("python", "", LOAD)


def test_a_stop_beside_code_that_had_no_cpu_is_told_with_its_seconds() -> None:
    """Judges read "The process was stopped" of 2.2 s, of which 0.9 s were the stop and the rest a hook without a CPU."""
    both = span(2.25, stack(MAIN, LOAD, seconds=1.3), cpu=0.14, queue=1.21, stopped_s=0.87)
    found = explained(2.25, between=both)
    assert found.cause[:3] == ("python", "", LOAD)
    assert [(other.cause.kind, other.seconds) for other in found.others] == [("stopped", 0.87)]
    starved = explained(2.0, between=span(2.0, cpu=0.01, queue=1.3, stopped_s=0.6))
    assert starved.cause.kind == "machine" and [other.cause.kind for other in starved.others] == ["stopped"]


def test_a_stopped_process_is_told() -> None:
    assert explained(3.0, between=span(3.0, stack(MAIN, LOAD, seconds=3.0), stopped_s=2.9)).cause.kind == "stopped"


def test_a_step_that_computed_more_is_tensorflows_work_on_a_busy_machine_too() -> None:
    busy = span(0.5, stack(MAIN, RUN, seconds=0.5), process=0.12, process_queue_s=2.0)
    found = explained(0.005, 0.5, within=busy)
    assert (found.cause.kind, found.cause.name) == ("tensorflow", "computed")


def test_a_step_whose_threads_had_no_cpu_is_the_machines_and_one_that_slept_is_not() -> None:
    starved = span(0.5, stack(MAIN, RUN, seconds=0.5), process=0.001, process_queue_s=0.6)
    assert explained(0.005, 0.5, within=starved).cause.kind == "machine"
    slept = replace(starved, process_queue_s=0.01)
    assert explained(0.005, 0.5, within=slept).cause[:2] == ("tensorflow", "waited")


@pytest.mark.parametrize(("others_share", "cause"), [(0.95, "unknown"), (0.5, "tensorflow")])
def test_where_linux_may_count_sleeps_as_waits_a_busy_machine_decides(others_share: float, cause: str) -> None:
    """A step of 700 ms used no CPU, beside a load of 11: "TensorFlow waited"."""
    waited = span(0.7, stack(MAIN, RUN, seconds=0.7), process=0.001, process_queue_s=0.01, process_doubtful_queue_s=0.6)
    found = explained(0.005, 0.7, within=waited, others_share=others_share)
    assert found.cause.kind == cause and ("waited for a CPU or for something else" in found.doubt) == (cause == "unknown")


def test_a_short_wait_within_a_step_beside_busy_processes_may_be_one_for_a_cpu() -> None:
    """Linux counts a wait for a CPU when it is over."""
    short = span(0.085, stack(MAIN, RUN, seconds=0.085), process=0.001, process_queue_s=0.002)
    assert explained(0.005, 0.085, within=short).cause.kind == "tensorflow"
    found = explained(0.005, 0.085, within=short, others_share=0.75)
    assert (found.cause.kind, found.doubt) == ("unknown", NO_QUEUES)


def test_a_step_whose_own_thread_had_no_cpu_is_the_machines_whatever_stacks_were_read() -> None:
    starved = span(0.6, process=0.01, queue=0.47)
    found = explained(0.005, 0.6, within=starved)
    assert (found.cause.kind, found.doubt) == ("machine", "") and found.parts[0].kind == "no_cpu"
    others = span(0.6, process=0.01, process_queue_s=2.2)  # TensorFlow's threads
    assert explained(0.005, 0.6, within=others).cause.kind == "machine"


def test_a_step_that_may_have_waited_for_a_cpu_is_not_said_to_wait_in_tensorflow() -> None:
    unknown = span(0.5, stack(MAIN, RUN, seconds=0.5), process=0.0, process_queue_s=None)
    found = explained(0.005, 0.5, within=unknown)
    assert (found.cause.kind, found.doubt) == ("unknown", NO_QUEUES)
    partly = explained(0.005, 0.5, within=replace(unknown, process_queue_s=0.15))
    assert (partly.cause.kind, partly.doubt) == ("unknown", PARTLY_NO_CPU)


def test_cpu_time_that_may_be_of_the_steps_before_and_after_is_no_work_of_a_slow_step() -> None:
    busy = span(0.184, stack(MAIN, RUN, seconds=0.18), process=0.025, process_min_s=0.008, process_queue_s=0.45)
    assert explained(0.005, 0.184, within=busy).cause.kind == "machine"


def test_little_more_work_is_not_the_cause_where_it_usually_waits_less_for_a_cpu() -> None:
    starved = span(0.6, stack(MAIN, RUN, seconds=0.6), process=0.12, process_queue_s=2.0)
    quiet = explained(0.005, 0.6, within=starved, usual_process_queue=0.05)
    assert quiet.cause.kind == "machine"
    busy = explained(0.005, 0.6, within=starved, usual_process_queue=0.8)  # eight times as long as it ran
    assert busy.cause[:2] == ("tensorflow", "computed")


def test_a_loop_of_ops_computed_longer_where_its_cpu_time_usually_waits_as_long_for_a_cpu() -> None:
    """0.16 s of CPU time in 0.55 s, and its threads were ready to run all the time, as usual on this machine."""
    loop = span(0.567, stack(MAIN, RUN, seconds=0.56), process=0.16, process_queue_s=0.53)
    assert explained(0.005, 0.567, within=loop, usual_process_queue=0.85).cause[:2] == ("tensorflow", "computed")
    half = explained(0.005, 0.567, within=replace(loop, process_queue_s=0.2), usual_process_queue=0.85)
    assert half.cause[:2] == ("tensorflow", "computed") and half.cause.share == pytest.approx(0.64, abs=0.02)
    slept = replace(loop, process_queue_s=0.1)
    assert explained(0.005, 0.567, within=slept, usual_process_queue=0.85).cause[:2] == ("tensorflow", "")


def test_cpu_time_of_other_python_threads_is_no_work_of_a_step() -> None:
    """A thread of the script computes all the time, also while a step waits."""
    waits = span(0.6, stack(MAIN, RUN, seconds=0.6), process=0.61, python_s=0.6, process_queue_s=0.01)
    assert explained(0.005, 0.6, within=waits).cause[:2] == ("tensorflow", "waited")
    computes = replace(waits, process_s=1.1, process_min_s=1.1)
    assert explained(0.005, 0.6, within=computes).cause[:2] == ("tensorflow", "computed")


@pytest.mark.parametrize(
    ("length_s", "process", "queue", "process_queue"),
    [(0.363, 0.044, 0.231, 0.5), (0.263, 0.047, 0.05, 0.4), (0.306, 0.03, 0.285, 0.4), (0.669, 0.028, 0.351, 0.9)],
)
def test_a_little_work_beside_a_lack_of_cpus_is_no_reason_for_a_slow_step(
    length_s: float, process: float, queue: float, process_queue: float
) -> None:
    """Judges read "TensorFlow or its input pipeline computed longer: the process used 0.1 CPUs" of steps without such work."""
    idle = span(
        length_s, stack(MAIN, RUN, seconds=length_s), process=process, queue=queue, process_queue_s=process_queue, cpu=0.003
    )
    found = explained(0.005, length_s, within=idle, usual_process_queue=0.8)
    assert found.cause.kind in ("machine", "unknown")
    works = replace(idle, process_s=0.17, process_min_s=0.17, queue_s=0.01)
    assert explained(0.005, length_s, within=works, usual_process_queue=0.8).cause[:2] == ("tensorflow", "computed")


def test_work_of_the_script_s_own_code_in_a_step_is_not_tensorflows() -> None:
    """Beside a load of 18, ``sorted`` in a named step was "TensorFlow computed longer": its samples covered half of the time."""
    own = span(2.0, stack(MAIN, LOAD, seconds=0.95), cpu=0.8, queue=0.1, process=0.8, process_queue_s=1.0)
    found = explained(0.005, 2.0, within=own, usual_process_queue=0.5, has_python=True)
    assert found.cause[:3] == ("python", "", LOAD)


def test_threads_that_wait_for_a_cpu_on_a_busy_machine_are_not_said_to_wait_in_tensorflow() -> None:
    starved = span(0.5, stack(MAIN, RUN, seconds=0.5), process=0.01, process_queue_s=0.55)
    assert explained(0.005, 0.5, within=starved, usual_process_queue=1.0).cause.kind == "machine"
    less = replace(starved, process_queue_s=0.2)
    assert explained(0.005, 0.5, within=less, usual_process_queue=1.0).cause.kind == "unknown"


def test_a_step_of_which_nothing_was_counted_is_not_tensorflows() -> None:
    nothing = replace(span(0.5, stack(MAIN, RUN, seconds=0.5)), process_s=None, process_min_s=None, cpu_s=None)
    found = explained(0.005, 0.5, within=nothing)
    assert (found.cause.kind, found.doubt) == ("unknown", NO_QUEUES)


def test_parts_of_one_kind_are_the_cause_together() -> None:
    others = (
        OtherSteps("predict: net", 1, 800 * MS, "first call"),
        OtherSteps("evaluate: net", 1, 230 * MS, "first call"),
        OtherSteps("predict: net", 9, 90 * MS, ""),
    )
    found = explained(1.83, between=span(1.83, stack(MAIN, LOAD, seconds=1.83), queue=0.6), other_runs=others)
    assert (found.cause.kind, found.cause.frame) == ("retrace", None)  # no line called it, as far as was seen


def test_what_an_evaluation_does_between_its_steps_is_the_evaluations() -> None:
    evaluation = OtherSteps("evaluate: net", 100, 690 * MS, "", 1_010 * MS, 2_300 * MS)
    spent = span(1.43, stack(MAIN, LOAD, seconds=1.43), cpu=0.1, queue=0.3)
    found = explained(1.43, between=spent, other_runs=(evaluation,))
    assert found.cause.kind == "other_run" and found.parts[0].seconds == pytest.approx(1.29)


def test_all_that_passes_below_an_evaluation_is_the_evaluations_and_fits_line_is_innocent() -> None:
    steps = OtherSteps("evaluate: net", 20, 313 * MS, "", 1_300 * MS, 1_613 * MS)
    evaluate, ready = FIT._replace(function="evaluate"), Frame(TF + "tensorflow/python/framework/ops.py", 9, "convert", "", True)
    asked = stack(MAIN, LOAD, evaluate, ready, seconds=0.9)
    found = explained(0.917, between=span(0.917, asked, cpu=0.1, queue=0.05), other_runs=(steps,))
    assert [part.kind for part in found.parts][:2] == ["wait", "other_run"]
    name = "evaluate: net: 20 steps, 313 ms; 587 ms more in the same call"
    assert (found.cause.kind, found.cause.name, found.cause.frame) == ("other_run", name, LOAD)
    by_fit = asked._replace(frames=(MAIN, FIT, evaluate, ready))
    freed = asked._replace(
        frames=(MAIN, FIT, FIT._replace(file="tftracer-wrappers.py", function="phase"), FIT._replace(function="x"))
    )
    found = explained(0.917, between=span(0.917, freed, cpu=0.1, queue=0.05), other_runs=(steps,))
    assert (found.cause.kind, found.cause.frame) == ("other_run", None)
    for length in (313, 900):
        found = explained(0.917, between=span(0.917, by_fit, cpu=0.1), other_runs=(steps._replace(ns=length * MS),))
        assert (found.cause.kind, found.cause.frame) == ("other_run", None)
    found = explained(0.917, between=span(0.917, stack(MAIN, EPOCH, evaluate, seconds=0.9), cpu=0.1), other_runs=(steps,))
    assert (found.cause.kind, found.cause.name) == ("callback", "MyLogger")


def test_what_fit_does_between_two_epochs_is_the_turn_of_an_epoch() -> None:
    turn = Frame(TF + "keras/src/trainers/epoch_iterator.py", 111, "_enumerate_iterator", "", True)
    for more in ({"cpu": 0.02}, {"cpu": 1.2}, {"cpu": None, "queue": None}):
        found = explained(1.3, between=span(1.3, stack(MAIN, FIT, turn, seconds=1.1), **more))
        assert (found.cause[:3], found.doubt) == (("python", "the turn of an epoch", None), "")
    frees = stack(MAIN, FIT, seconds=1.1)  # fit's own frame alone
    assert explained(1.3, between=span(1.3, frees, cpu=0.02)).cause.name == "the turn of an epoch"
    for other in (span(1.3, frees, cpu=1.2), span(1.3, frees, cpu=0.02, watch_delay_s=1.2)):
        assert explained(1.3, between=other).cause.name == ""
    found = explained(1.3, between=span(1.3, stack(MAIN, turn, seconds=1.1), cpu=1.2))
    assert found.cause[:3] == ("python", "", MAIN)


def test_code_without_a_cpu_does_not_wait_at_a_line() -> None:
    others = (OtherSteps("evaluate: net", 20, 760 * MS, ""),)
    code = span(2.1, stack(MAIN, LOAD, seconds=2.1), cpu=0.16, queue=1.28)
    found = explained(2.1, between=code, other_runs=others)
    assert [part.kind for part in found.parts][:3] == ["no_cpu", "other_run", "wait"]
    assert found.cause[:3] == ("python", "", LOAD)


def test_tensorflow_is_not_blamed_where_a_python_function_could_have_been_missed() -> None:
    busy = span(0.5, stack(MAIN, RUN, seconds=0.5), process=0.4, functions_s=None)
    found = explained(0.005, 0.5, within=busy)
    assert found.cause.kind == "unknown" and found.doubt == NOT_MEASURED
    assert explained(0.005, 0.5, within=busy, may_call_python=False).cause[:2] == ("tensorflow", "computed")


def test_code_of_the_script_in_a_step_may_have_been_missed_unless_other_threads_computed() -> None:
    """The step of a session may contain the code of other hooks, which runs on the thread itself."""
    few = span(0.5, stack(MAIN, RUN, seconds=0.1), cpu=0.4, process=0.45)
    found = explained(0.005, 0.5, within=few, runs_script=True)
    assert found.cause.kind == "unknown" and found.doubt == TOO_FEW
    assert explained(0.005, 0.5, within=replace(few, cpu_s=0.02), runs_script=True).cause[:2] == ("tensorflow", "computed")


def test_a_look_at_the_edge_of_a_turn_tells_no_line() -> None:
    found = explained(0.25, between=span(0.25, stack(MAIN, SAVE, NUMPY, seconds=0.07)))
    assert (found.cause[:3], found.doubt[:16]) == (("wait", "", None), "Its stacks were ")


def test_a_python_function_of_the_graph_is_found_on_another_thread() -> None:
    called = stack(SCRIPT_OPS, LOAD, seconds=0.3, thread="Dummy-3")
    found = explained(0.005, 0.35, within=span(0.35, stack(MAIN, RUN, seconds=0.35), other_stacks=(called,)))
    assert (found.cause.kind, found.cause.frame) == ("py_function", LOAD)


def test_a_comprehension_is_a_part_of_its_function() -> None:
    part = LOAD._replace(function="<genexpr>", line=21)
    assert shared_line([stack(MAIN, LOAD, NUMPY, part)]).frame == LOAD._replace(line=21)
    assert shared_line([stack(MAIN, part)]).frame == part


def test_a_lambda_is_a_part_of_the_function_that_calls_it_through_c_code() -> None:
    part = LOAD._replace(function="<lambda>", line=21)
    assert shared_line([stack(MAIN, LOAD, part)]).frame == LOAD._replace(line=21)
    assert shared_line([stack(MAIN, LOAD, NUMPY, part)]).frame == part


def test_python_within_an_eager_step_has_its_line() -> None:
    seen = span(0.4, stack(MAIN, LOAD, seconds=0.4), cpu=0.39)
    found = explained(0.005, 0.4, within=seen, has_python=True)
    assert (found.cause.kind, found.cause.frame) == ("python", LOAD)
    # A stack outside TensorFlow is from before or after the step of a session or a function.
    assert explained(0.005, 0.4, within=seen).cause.kind == "tensorflow"


def test_an_op_of_an_eager_loop_has_the_line_that_runs_it() -> None:
    computing = span(0.4, stack(MAIN, LOAD, EAGER_OP, seconds=0.4), cpu=0.1, process=0.8)
    found = explained(0.0, 0.4, within=computing, has_python=True)
    assert (found.cause.kind, found.cause.name, found.cause.frame) == ("tensorflow", "computed", LOAD)
    assert explained(0.0, 0.4, within=computing).cause.frame is None
    library = replace(computing, stacks=(stack(NUMPY, EAGER_OP, seconds=0.4),))
    assert explained(0.0, 0.4, within=library, has_python=True).cause.frame is None


def test_an_op_without_a_cpu_is_no_python_code() -> None:
    stacks = (stack(MAIN, LOAD, EAGER_OP, seconds=0.9), stack(MAIN, NUMPY, seconds=0.25))
    found = explained(0.0, 1.15, within=span(1.15, *stacks, cpu=0.15, queue=1.0, process=0.15), has_python=True)
    assert (found.cause.kind, found.cause.frame) == ("tensorflow", LOAD)


def test_what_was_not_sampled_is_not_known_and_says_why() -> None:
    found = explained(0.005, 0.2, within=span(0.2), runs_script=True)
    assert found.cause.kind == "unknown" and found.doubt == NO_STACK
    assert explained(0.005, 0.2, within=span(0.2)).cause[:2] == ("tensorflow", "waited")  # it runs no code of the script
    nothing = Span(0.2)
    found = explained(0.2, between=nothing)
    assert (found.cause.kind, found.parts[0].kind) == ("unknown", "unknown") and found.doubt == NO_STACK
    assert explained(0.08, between=Span(0.08)).doubt == SHORT
    assert explained(0.107, between=Span(0.107)).doubt == NO_STACK
    sampled = explained(0.2, between=Span(0.2, (stack(MAIN, LOAD),)))
    assert (sampled.cause.kind, sampled.cause.frame, sampled.doubt) == ("unknown", LOAD, NO_COUNTERS)


def test_the_conversion_of_values_that_are_fed_is_of_the_line_that_feeds_them() -> None:
    """NumPy makes an array of a list in C, below a frame of TensorFlow's."""
    for file, function in (("client/session.py", "_run"), ("framework/constant_op.py", "convert_to_eager_tensor")):
        convert = Frame(f"{TF}tensorflow/python/{file}", 1100, function, "", True)
        found = explained(inside=0.4, within=span(0.4, stack(MAIN, convert, seconds=0.39), cpu=0.39))
        assert (found.cause.kind, found.cause.frame) == ("python", MAIN)


def test_a_hook_that_is_called_within_the_step_is_named_though_it_runs_tensorflow() -> None:
    found = explained(
        inside=0.4, within=span(0.4, stack(MAIN, RUN, seconds=0.05), stack(MAIN, SAVE, RUN, seconds=0.35), cpu=0.02)
    )
    assert (found.cause.kind, found.cause.name) == ("hook", "CheckpointSaverHook")


def test_time_that_was_mostly_a_wait_for_a_disk_is_not_called_python_code() -> None:
    reads = span(0.3, stack(MAIN, LOAD, seconds=0.3), cpu=0.048, queue=0.05, disk_s=0.19)
    assert explained(0.3, between=reads).cause[:3] == ("disk", "", LOAD)
    lacks = span(1.05, stack(MAIN, LOAD, seconds=1.05), cpu=0.13, queue=0.7, disk_s=0.17)  # "Waited for a disk"
    assert explained(1.05, between=lacks).cause[:3] == ("python", "", LOAD)


def test_a_step_in_which_the_process_used_no_cpu_computed_nothing() -> None:
    found = explained(inside=2.5, within=span(2.5, stack(MAIN, RUN, seconds=2.5), process=0.1))
    assert found.cause.name != "computed"


def test_a_loop_that_waits_for_a_dataset_names_the_python_function_that_it_waits_for() -> None:
    following = Frame(TF + "tensorflow/python/data/ops/iterator_ops.py", 773, "_next_internal", "", True)
    waits = span(0.5, stack(MAIN, following, seconds=0.5), other_stacks=(stack(SCRIPT_OPS, LOAD, seconds=0.45, thread="pool"),))
    assert explained(0.5, between=waits).cause[:3] == ("py_function", "", LOAD)
    assert explained(0.5, between=replace(waits, other_stacks=())).cause[:3] == ("input", "", MAIN)
    elsewhere = replace(waits, stacks=(stack(MAIN, LOAD, seconds=0.5),))
    assert explained(0.5, between=elsewhere).cause[:3] == ("wait", "", LOAD)


def test_a_generator_that_reads_ahead_is_not_named_where_a_function_of_the_step_took_the_time() -> None:
    generator = Frame(TF + "tensorflow/python/data/ops/from_generator_op.py", 250, "generator_py_func", "", True)
    ahead = stack(SCRIPT_OPS, generator, MAIN, seconds=0.4, thread="ahead")
    own = stack(SCRIPT_OPS, LOAD, seconds=0.35, thread="own")
    waits = stack(MAIN, RUN, seconds=0.4)
    assert explained(inside=0.4, within=span(0.4, waits, other_stacks=(ahead, own))).cause.frame == LOAD
    assert explained(inside=0.4, within=span(0.4, waits, other_stacks=(ahead,))).cause.frame == MAIN
    usual = span(0.4, waits, other_stacks=(ahead,), functions_s=0.0)
    assert explained(inside=0.4, within=usual).cause.kind != "py_function"


ELEMENT = Frame(TF + "tensorflow/python/data/ops/iterator_ops.py", 810, "_next_internal", "", True)


def test_a_wait_for_the_next_element_is_told_by_its_clock_though_no_stack_was_read() -> None:
    found = explained(0.06, between=span(0.06, cpu=0.002), input_ns=55 * MS)
    assert found.parts[0].kind == "input" and found.parts[0].seconds == pytest.approx(0.055)
    assert (found.cause[:3], found.doubt) == (("input", "", None), "")
    line = explained(0.6, between=span(0.6, stack(MAIN, ELEMENT, seconds=0.5)), input_ns=590 * MS)
    assert line.cause[:3] == ("input", "", MAIN)
    usual = explained(0.06, between=span(0.06, cpu=0.05), input_ns=5 * MS, usual_input_ns=5 * MS)
    assert usual.cause.kind == "python"  # the code takes the rest


def test_a_generator_that_the_loop_waited_for_is_named() -> None:
    generator = Frame(TF + "tensorflow/python/data/ops/from_generator_op.py", 250, "generator_py_func", "", True)
    read = stack(SCRIPT_OPS, generator, LOAD, seconds=0.5, thread="tf_data")
    between = span(0.6, stack(MAIN, ELEMENT, seconds=0.5), other_stacks=(read,))
    assert explained(0.6, between=between, input_ns=590 * MS).cause[:3] == ("py_function", "", LOAD)


@pytest.mark.parametrize("measured_ms", [560, 400, 200, 60])
def test_a_wait_for_an_element_is_one_cause_whatever_part_of_it_was_measured(measured_ms: int) -> None:
    found = explained(0.6, between=span(0.6, stack(MAIN, ELEMENT, seconds=0.5), cpu=0.01), input_ns=measured_ms * MS)
    assert found.cause.kind == "input" and found.others == () and (found.cause.share or 0.0) >= measured_ms / 600


def test_the_line_of_code_is_not_where_the_loop_waited_for_its_dataset() -> None:
    stacks = stack(MAIN, ELEMENT, seconds=0.29), stack(MAIN, LOAD, seconds=0.21)
    between = span(0.54, *stacks, cpu=0.11, queue=0.27)
    assert explained(0.54, between=between, input_ns=167 * MS).cause[:3] == ("python", "", LOAD)
    unseen = explained(0.54, between=replace(between, stacks=stacks[:1]), input_ns=167 * MS)
    assert unseen.cause[:3] == ("python", "", None) and unseen.doubt


def test_a_wait_for_an_element_is_not_python_code_where_the_tracer_held_the_lock_without_a_cpu() -> None:
    ours = LockHolder("tftracer-watch", "tracer", ())
    between = span(0.6, stack(MAIN, ELEMENT, seconds=0.5), cpu=0.16, watch_delay_s=0.3, holders=(ours,))
    assert explained(0.6, between=between, input_ns=590 * MS).cause.kind == "input"


def test_a_thread_that_had_no_cpu_is_not_said_to_wait_for_its_dataset_and_one_that_works_for_it_is() -> None:
    starved = explained(0.1, between=span(0.1, cpu=0.001, queue=0.09), input_ns=95 * MS)
    assert starved.cause.kind == "machine"
    works = explained(0.5, between=span(0.5, cpu=0.2, queue=0.29), input_ns=495 * MS)  # nothing works ahead
    assert works.cause.kind == "input"


def test_a_save_is_named_by_its_clock_and_the_steps_of_another_run_in_it_are_its_own() -> None:
    start = 1_000 * MS
    others = (OtherSteps("save/Identity", 1, 300 * MS, "", start + 100 * MS, start + 400 * MS),)
    found = explained(
        0.5, between=span(0.5), other_runs=others, saves=(Save("CheckpointSaverHook.save", start + MS, start + 450 * MS),)
    )
    assert [part.kind for part in found.parts][:1] == ["checkpoint"] and "other_run" not in [part.kind for part in found.parts]
    assert (found.cause[:3], found.doubt) == (("hook", "CheckpointSaverHook", None), "")
    wrapper = Frame(TF + "tensorflow/tftracer-wrappers.py", 1, "phase", "", True)
    asked = span(0.5, stack(MAIN, LOAD, wrapper, NUMPY, seconds=0.4))
    found = explained(0.5, between=asked, saves=(Save("Saver.save", start + MS, start + 450 * MS),))
    assert found.cause[:3] == ("checkpoint", "Saver.save", LOAD)
    within = span(0.5, stack(MAIN, LOAD, wrapper, NUMPY, seconds=0.4), cpu=0.4, process=0.4)
    in_eager_step = Save("Checkpoint.save", start + 10 * MS, start + 450 * MS)
    found = explained(inside=0.5, within=within, saves=(in_eager_step,))
    assert found.cause[:3] == ("checkpoint", "Checkpoint.save", LOAD)


def test_time_in_the_kernel_is_told_with_what_it_did() -> None:
    """Reading, writing and touching new memory are Python code at a line, and so much is known more."""

    def what(**counted: Any) -> str:
        found = explained(0.4, between=span(0.4, stack(MAIN, LOAD, seconds=0.4), cpu=0.38, **counted))
        assert found.cause[:3] == ("python", "", LOAD)
        return next(part.what for part in found.parts if part.kind == "python")

    told = what(kernel_s=0.3, faults=100_000.0)
    assert told == "mostly in the kernel: for reading, writing, other system calls or new memory (100,000 page faults)"
    assert what(kernel_s=0.3, faults=300.0) == "mostly in the kernel: for reading, writing, other system calls or new memory"
    assert what(kernel_s=0.1, faults=900.0) == what() == ""


def test_an_eager_step_that_waits_for_its_dataset_says_so() -> None:
    found = explained(inside=0.5, within=span(0.5, process=0.01), inside_input_ns=480 * MS)
    assert found.cause.kind == "input"


SEND = Frame("send.py", 40, "send", "", False)
PACK = Frame("pack.py", 30, "pack", "", False)
NEXT = Frame(TF + "tensorflow/python/data/ops/iterator_ops.py", 800, "__next__", "", True)


def test_two_causes_that_fall_together_are_both_told_each_with_its_own_seconds() -> None:
    """ "The longest 513 ms" of a request of 320 ms: the step also compressed something, which was not told."""
    both = (stack(MAIN, SEND, seconds=0.32)._replace(samples=3), stack(MAIN, PACK, seconds=0.12)._replace(samples=1))
    found = explained(0.44, between=span(0.44, *both, cpu=0.1))
    assert found.cause[:3] == ("wait", "", SEND)
    ((other, seconds),) = found.others
    assert other[:3] == ("python", "", PACK) and seconds == pytest.approx(0.1, abs=0.01)
    alone = explained(0.32, between=span(0.32, both[0], cpu=0.005))
    assert alone.cause[:3] == ("wait", "", SEND) and alone.others == ()


def test_other_code_has_its_time_without_a_cpu() -> None:
    """Of 869 ms of a checkpoint and 324 ms of other code on a busy machine, the clock showed 100 ms of that code."""
    phase = Frame("tftracer-wrappers.py", 1, "phase", "", True)
    seen = span(1.2, stack(MAIN, LOAD, phase, seconds=0.83), stack(MAIN, PACK, seconds=0.37), cpu=0.97, queue=0.22)
    found = explained(1.2, between=seen, saves=(Save("CheckpointManager.save", 1_000 * MS, 1_869 * MS),))
    ((other, seconds),) = found.others
    assert found.cause.kind == "checkpoint" and other[:3] == ("python", "", PACK) and seconds == pytest.approx(0.324, abs=0.02)


def test_a_single_sample_elsewhere_is_no_other_cause_if_no_clock_shows_it() -> None:
    one = stack(MAIN, PACK, seconds=0.12)._replace(samples=1)
    waits = stack(MAIN, SEND, seconds=0.32)._replace(samples=3)
    assert explained(0.44, between=span(0.44, waits, one, cpu=0.005)).others == ()
    twice = explained(0.44, between=span(0.44, waits, one._replace(samples=2), cpu=0.005))
    ((other, seconds),) = twice.others
    assert other[:3] == ("wait", "", PACK) and seconds < 0.12


def test_code_that_every_step_runs_is_no_other_cause() -> None:
    usual = stack(MAIN, PACK, seconds=0.3)._replace(samples=5)
    turn: dict[str, Any] = {"usual_ns": 305 * MS, "limit_ns": 900 * MS, "usual_inside_ns": 5 * MS}
    found = explained(1.3, between=span(1.3, stack(MAIN, SEND, seconds=1.0), usual, cpu=0.3), **turn)
    assert found.cause.frame == SEND and found.others == ()


def test_a_checkpoint_and_a_wait_in_one_turn_are_both_told() -> None:
    save = Save("CheckpointManager.save", 1_000 * MS, 1_405 * MS)
    phase = Frame("tftracer-wrappers.py", 1, "phase", "", True)
    seen = span(0.728, stack(MAIN, LOAD, phase, seconds=0.405), stack(MAIN, SEND, seconds=0.32), cpu=0.18)
    found = explained(0.728, between=seen, saves=(save,))
    assert (found.cause.kind, found.cause.frame) == ("checkpoint", LOAD)
    ((other, seconds),) = found.others
    assert other[:3] == ("wait", "", SEND) and seconds == pytest.approx(0.318, abs=0.01)


def test_code_beside_a_checkpoint_is_not_named_by_the_line_that_saves() -> None:
    """ "Python code at save_checkpoint()" where the checkpoint took 0.1 s and other code 0.14 s."""
    phase = Frame("tftracer-wrappers.py", 1, "phase", "", True)
    save = Save("CheckpointManager.save", 1_000 * MS, 1_106 * MS)
    saves, packs = stack(MAIN, LOAD, phase, seconds=0.106), stack(MAIN, PACK, seconds=0.14)
    found = explained(0.25, between=span(0.25, saves, packs, cpu=0.24, kernel_s=0.2), saves=(save,))
    assert found.cause[:3] == ("python", "", PACK) and [other.cause.kind for other in found.others] == ["checkpoint"]
    assert not next(part.what for part in found.parts if part.kind == "python")
    seen = span(0.19, saves, packs._replace(seconds=0.08), cpu=0.165, stopped_s=0.025)
    even = explained(0.19, between=seen, saves=(save._replace(end_ns=1_090 * MS),))
    assert [even.cause.kind, *(other.cause.kind for other in even.others)] == ["checkpoint", "python"] and even.doubt == ""


def test_a_request_is_no_wait_for_a_dataset_because_another_thread_held_the_lock_in_one() -> None:
    """Of a turn of 1.37 s, 1.06 s were a wait for an element, nearly all of it for Python's lock; a request took 0.31 s."""
    phase = Frame("tftracer-wrappers.py", 1, "next_element", "", True)
    holder = LockHolder("config-watcher", "other", (TRAIN_THREAD,))
    seen = span(1.37, stack(MAIN, phase, NEXT, seconds=1.0), stack(MAIN, SEND, seconds=0.37), lock_wait_s=0.995)
    found = explained(1.37, between=replace(seen, holders=(holder,) * 9), input_ns=1_060 * MS)
    assert found.cause.kind == "lock" and sum(part.seconds for part in found.parts if part.kind == "input") < 0.01
    ((other, seconds),) = found.others
    assert other[:3] == ("wait", "", SEND) and seconds == pytest.approx(0.37, abs=0.01)


def test_a_line_that_waits_is_told_from_one_that_runs_by_their_shares() -> None:
    both = (stack(MAIN, SEND, seconds=0.29)._replace(samples=3), stack(MAIN, PACK, seconds=0.22)._replace(samples=3))
    found = explained(0.513, between=span(0.513, *both, cpu=0.18))
    assert found.cause[:3] == ("wait", "", SEND) and [other.cause.frame for other in found.others] == [PACK]
    unclear = explained(0.513, between=span(0.513, *both, cpu=0.25))
    assert unclear.cause.frame == MAIN


def test_what_explains_the_cause_is_no_other_cause() -> None:
    others = tuple(LockHolder(name, "other", (MAIN,)) for name in ("one", "two", "three"))
    worked = span(0.6, stack(MAIN, LOAD, seconds=0.6), cpu=0.2, lock_wait_s=0.4, holders=others)
    assert explained(0.6, between=worked, usual_lock_wait=0.5).others == ()
    called = stack(SCRIPT_OPS, LOAD, seconds=0.6, thread="worker")
    held = span(0.6, stack(MAIN, NEXT, seconds=0.6), lock_wait_s=0.5, holders=(LockHolder("worker", "other", called.frames),) * 5)
    found = explained(0.6, between=replace(held, other_stacks=(called,)), input_ns=600 * MS)
    assert found.cause[:3] == ("py_function", "", LOAD) and found.others == ()


def test_steps_of_another_run_are_no_code_and_no_line_beside_them() -> None:
    """ "Waited at main(); besides, 1.71 s in steps of another run": of an evaluation's own call. The rest was a hook."""
    sorts = Frame("hooks.py", 119, "rank_words", "VocabularyHook", False)
    in_evaluation, in_hook = stack(MAIN, LOAD, RUN, seconds=1.7), stack(MAIN, sorts, seconds=2.9)
    evaluation = OtherSteps("net/Mean", 10, 1_710 * MS, "", 1_000 * MS, 2_710 * MS)
    seen = span(5.1, in_evaluation, in_hook, cpu=0.5, queue=2.5)
    found = explained(5.1, between=seen, other_runs=(evaluation,))
    assert found.cause[:2] == ("hook", "VocabularyHook") and [other.cause.kind for other in found.others] == ["other_run"]
    twice = span(0.3, stack(MAIN, SAVE, RUN, seconds=0.29), cpu=0.01)
    reads = OtherSteps("global_step/add", 1, 290 * MS, "", 1_000 * MS, 1_290 * MS)
    assert explained(0.3, between=twice, other_runs=(reads,)).others == ()


def test_a_checkpoint_is_of_the_hook_that_saves_not_of_another_one_in_the_same_turn() -> None:
    """ "Besides, about 160 ms in the hook VocabularyHook": that was the time of the checkpoint, which another hook saves."""
    sorts = stack(MAIN, Frame("hooks.py", 119, "rank_words", "VocabularyHook", False), seconds=0.4)
    saves = stack(MAIN, SAVE, Frame("tftracer-wrappers.py", 1, "phase", "", True), seconds=0.2)
    save = Save("Saver.save", 1_000 * MS, 1_200 * MS)
    names = []
    for end in (1_200, 1_350):
        found = explained(0.6, between=span(0.6, sorts, saves, cpu=0.59), saves=(save._replace(end_ns=end * MS),))
        names.append([found.cause.name, *(other.cause.name for other in found.others)])
    assert names == [["VocabularyHook", "CheckpointSaverHook"], ["CheckpointSaverHook", "VocabularyHook"]]


def test_code_beside_a_checkpoint_on_a_busy_machine_is_its_cause() -> None:
    """ "Its thread had no CPU for 896 ms": a sort of 1.05 s and a checkpoint of 0.38 s, both without a CPU most of the time."""
    sorts = stack(MAIN, PACK, seconds=1.0)
    saves = stack(MAIN, SAVE, Frame("tftracer-wrappers.py", 1, "phase", "", True), seconds=0.38)
    seen = span(1.426, sorts, saves, cpu=0.5, queue=0.9)
    found = explained(1.426, between=seen, saves=(Save("Saver.save", 1_000 * MS, 1_384 * MS),))
    assert found.cause[:3] == ("python", "", PACK) and [other.cause.name for other in found.others] == ["CheckpointSaverHook"]


def test_code_at_an_unknown_line_is_not_told_twice() -> None:
    """ "Python code, at an unknown line; besides, about 340 ms in the hook": both were the hook."""
    sorts = Frame("hooks.py", 119, "rank_words", "VocabularyHook", False)
    seen = span(0.85, stack(MAIN, sorts, seconds=0.3), cpu=0.3, queue=0.5)
    found = explained(0.85, between=seen)
    assert found.cause.kind == "python" and found.others == ()


def test_a_thread_that_waits_for_a_socket_does_not_hold_pythons_lock() -> None:
    holder = LockHolder("MainThread", "training", (SEND,))
    seen = span(0.3, stack(MAIN, SEND, seconds=0.3), watch_delay_s=0.2, holders=(holder,) * 3, waits_for="for a socket")
    assert [part.what for part in explained(0.3, between=seen).parts if part.kind == "wait"] == ["for a socket"]


def test_a_thread_in_a_session_that_is_not_recorded_waits_for_tensorflow() -> None:
    """ "The hook EvaluationHook, which waited for a lock or another thread": TensorFlow computed meanwhile."""
    product = Frame(TF + "tensorflow/python/ops/gen_math_ops.py", 6200, "mat_mul", "", True)
    for frames, words in (
        ((MAIN, LOAD, RUN), "for TensorFlow"),
        ((MAIN, LOAD, product), "for TensorFlow"),
        ((MAIN, LOAD), "for a lock or another thread"),
    ):
        seen = span(0.7, stack(*frames, seconds=0.7), cpu=0.05, waits_for="for a lock or another thread")
        assert [part.what for part in explained(0.7, between=seen).parts if part.kind == "wait"] == [words]


def test_a_wait_for_a_thread_tells_what_the_only_other_thread_at_work_did() -> None:
    """Of a wait for a lock or in join(), a reader asked who had it."""
    waits = stack(MAIN, LOAD, seconds=0.7)
    saver = stack(PACK, seconds=0.7, thread="saver")
    idle = stack(MAIN, Frame("/usr/lib/python3.11/threading.py", 324, "wait", "", True), seconds=0.7, thread="idle")
    seen = span(0.7, waits, cpu=0.05, waits_for="for a lock or another thread", other_stacks=(saver, idle))
    for name, who in (("saver", "thread saver"), ("thread 140001", "another thread")):
        seen = replace(seen, other_stacks=(saver._replace(thread=name), idle))
        words = f"for a lock or another thread, while {who} was at pack() (pack.py:30)"
        assert [part.what for part in explained(0.7, between=seen).parts if part.kind == "wait"] == [words]
    two = replace(seen, other_stacks=(saver, saver._replace(thread="loader")))
    for other in (two, replace(seen, other_stacks=(idle,)), replace(seen, waits_for="in a sleep")):
        assert "while" not in next(part.what for part in explained(0.7, between=other).parts if part.kind == "wait")


def test_on_a_busy_machine_a_single_sample_names_no_line() -> None:
    """ "Python code at lines_of()" of a sort: the reader of the stacks got a CPU when the sort had ended."""
    one = stack(MAIN, PACK, seconds=0.3)._replace(samples=1)
    seen = span(0.32, one, cpu=0.31, samples=1)
    assert explained(0.32, between=seen, others_share=0.1).cause.frame == PACK
    busy = explained(0.32, between=seen, others_share=0.6)
    assert busy.cause[:3] == ("python", "", None) and busy.doubt == TOO_FEW
    assert explained(0.32, between=span(0.32, one._replace(samples=2), cpu=0.31), others_share=0.6).cause.frame == PACK
    owned = one._replace(frames=(MAIN, EPOCH))
    assert explained(0.32, between=span(0.32, owned, cpu=0.31), others_share=0.6).cause[:3] == ("callback", "MyLogger", None)
    assert explained(0.32, between=span(0.32, owned, cpu=0.31)).cause[:3] == ("callback", "MyLogger", EPOCH)


def test_on_a_busy_machine_two_samples_are_no_other_cause() -> None:
    """ "Besides, about 520 ms at emit()", which took at most 160 ms."""
    sorts = stack(MAIN, Frame("hooks.py", 119, "rank_words", "VocabularyHook", False), seconds=0.66)
    two = stack(MAIN, PACK, seconds=0.52)._replace(samples=2)
    seen = span(1.18, sorts, two, cpu=0.7, queue=0.48)
    assert [other.cause.frame for other in explained(1.18, between=seen, others_share=0.1).others] == [PACK]
    assert explained(1.18, between=seen, others_share=0.9).others == ()
    three = replace(seen, stacks=(sorts, two._replace(samples=3)))
    assert [other.cause.frame for other in explained(1.18, between=three, others_share=0.9).others] == [PACK]
    owned = replace(seen, stacks=(sorts, two._replace(frames=(MAIN, EPOCH), samples=1)))
    assert explained(1.18, between=owned, others_share=0.9).others == (), "neither is a callback, by one sample"


def test_a_callback_is_never_called_within_a_step_of_fit() -> None:
    late = stack(MAIN, FIT, EPOCH, seconds=0.3)
    assert explained(inside=0.3, within=span(0.3, late, process=0.02)).cause.kind != "callback"
    assert explained(inside=0.3, within=span(0.3, late, process=0.02), title="train (8, 3)").cause.kind == "callback"


def test_a_checkpoint_of_a_hook_is_that_hooks_whatever_a_sample_beside_it_shows() -> None:
    save = Save("CheckpointSaverHook.save", 1_000 * MS, 1_250 * MS)
    beside = stack(MAIN, Frame("hooks.py", 124, "after_run", "HistogramHook", False), seconds=0.25)
    found = explained(0.3, between=span(0.3, beside, cpu=0.01), saves=(save,))
    assert found.cause[:3] == ("hook", "CheckpointSaverHook", None)


def test_one_reading_of_the_tracer_with_the_lock_proves_no_long_wait() -> None:
    ours = LockHolder("tftracer-web", "tracer", ())
    once = span(0.3, stack(MAIN, LOAD, seconds=0.3), lock_wait_s=0.25, holders=(ours, None), lock_readings=5)
    assert all(part.kind != "lock" for part in explained(0.3, between=once).parts)


def test_a_wait_for_the_lock_that_the_tracer_held_is_told() -> None:
    ours = LockHolder("tftracer-web", "tracer", ())
    found = explained(
        0.3, between=span(0.3, stack(MAIN, LOAD, seconds=0.3), lock_wait_s=0.25, holders=(ours,) * 4, lock_readings=6)
    )
    assert (found.cause.kind, found.cause.name) == ("lock", OF_TRACER)


def test_the_line_that_waits_for_the_lock_is_no_other_cause() -> None:
    """ "Besides, about 130 ms in the Keras callback": its thread had no CPU while it waited for the lock."""
    scanner = LockHolder("scanner", "other", (PACK,))
    waits = stack(MAIN, EPOCH, seconds=0.97)
    seen = span(0.97, waits, cpu=0.007, queue=0.126, lock_wait_s=0.83, holders=(scanner,) * 5, lock_readings=6)
    found = explained(0.97, between=seen)
    assert found.cause.kind == "lock" and found.others == ()


def test_the_share_of_a_callback_has_the_evaluation_that_it_runs() -> None:
    """ "This callback explains 55% of the time beyond the usual", without its evaluation."""
    evaluation = OtherSteps("evaluate: net", 140, 140 * MS, "", 1_000 * MS, 1_140 * MS)
    seen = span(0.31, stack(MAIN, EPOCH, RUN, seconds=0.14), stack(MAIN, EPOCH, seconds=0.16), cpu=0.01)
    found = explained(0.31, between=seen, other_runs=(evaluation,))
    assert found.cause.kind == "callback" and found.others == () and found.cause.share > 0.9


def test_an_evaluation_beside_a_callback_that_saves_is_not_the_callback_s() -> None:
    """ "ModelCheckpoint explains 100%", of 458 ms in which it saved for 244 and fit validated for 136."""
    evaluation = OtherSteps("evaluate: net", 30, 136 * MS, "", 1_000 * MS, 1_136 * MS)
    save = Save("MyLogger.on_epoch_end", 1_140 * MS, 1_384 * MS)
    saves = stack(MAIN, EPOCH, Frame("tftracer-wrappers.py", 1, "phase", "", True), NUMPY, seconds=0.244)
    seen = span(0.458, stack(MAIN, RUN, seconds=0.136), saves, stack(MAIN, EPOCH, seconds=0.07), cpu=0.02)
    found = explained(0.458, between=seen, other_runs=(evaluation,), saves=(save,))
    assert found.cause.kind == "callback" and 0.5 < found.cause.share < 0.8
    assert [other.cause.kind for other in found.others] == ["other_run"]


def test_a_callback_beside_another_one_in_few_samples_explains_its_part_alone() -> None:
    """ "This callback explains 100%", of 484 ms in which another one took 224."""
    other = Frame("helpers.py", 17, "on_train_batch_end", "PairJournal", False)
    twice = stack(MAIN, other, seconds=0.18)._replace(samples=2)
    both = explained(0.484, between=span(0.484, stack(MAIN, EPOCH, seconds=0.3), twice, cpu=0.05), others_share=0.9)
    assert [(each.cause.name, round(each.seconds, 2)) for each in both.others] == [("PairJournal", 0.17)]
    assert both.cause.share is not None and both.cause.share < 0.7
    seen = span(0.484, stack(MAIN, EPOCH, seconds=0.3), twice._replace(samples=1), cpu=0.05)
    found = explained(0.484, between=seen, others_share=0.9)
    assert (found.cause.kind, found.cause.name, found.others) == ("callback", "MyLogger", ())
    assert found.cause.share == pytest.approx(0.3 / 0.48, abs=0.01)


def test_a_step_in_which_the_process_hardly_computed_did_not_compute_longer() -> None:
    """ "TensorFlow or its input pipeline computed longer: the process used 0.2 CPUs", in a generator that slept."""
    step = stack(MAIN, RUN, seconds=0.32)
    for process, name in ((0.06, ""), (0.3, "computed")):
        found = explained(0.0, 0.32, within=span(0.32, step, cpu=0.01, process=process))
        assert (found.cause.kind, found.cause.name) == ("tensorflow", name)


def test_steps_of_another_run_are_not_told_again_as_those_of_the_hook_that_runs_them() -> None:
    """ "Steps of another run: global_step/add, 493 ms; besides, about 490 ms in the hook CheckpointSaverHook"."""
    reads = OtherSteps("global_step/add", 1, 493 * MS, "", 1_000 * MS, 1_493 * MS)
    found = explained(0.494, between=span(0.494, stack(MAIN, SAVE, RUN, seconds=0.12)), other_runs=(reads,))
    assert found.cause.kind == "other_run" and found.others == ()


def test_the_cause_with_the_most_seconds_comes_first() -> None:
    """ "The Keras callback HardExamples; besides, about 220 ms in RemoteLog", where the first took 126 ms."""
    waits = stack(MAIN, Frame("hooks.py", 9, "send", "RemoteLog", False), seconds=0.22)
    ran = stack(MAIN, EPOCH, seconds=0.126)
    found = explained(0.35, between=span(0.35, waits, ran, cpu=0.126))
    assert [found.cause.name, *(other.cause.name for other in found.others)] == ["RemoteLog", "MyLogger"]


def test_code_beside_a_collection_is_not_the_code_that_collects() -> None:
    """ "Garbage collection at sweep(); besides, about 510 ms in the callback RemoteLog", whose line is the same."""
    sweeps = stack(MAIN, Frame("callbacks.py", 180, "sweep", "RemoteLog", False), seconds=2.67)
    copies = stack(MAIN, Frame("callbacks.py", 169, "clone", "HardExamples", False), seconds=0.43)
    found = explained(3.1, between=span(3.1, sweeps, copies, cpu=2.75, gc_s=2.6))
    assert found.cause.kind == "gc" and [other.cause.name for other in found.others] == ["HardExamples"]


def test_a_collection_beside_a_checkpoint_is_not_at_the_line_that_saves() -> None:
    """ "Garbage collection at main() (script.py:378); besides, a checkpoint", whose stacks alone had been read."""
    saves = stack(MAIN, SAVE, Frame("tftracer-wrappers.py", 1, "phase", "", True), seconds=0.3)
    save = Save("CheckpointSaverHook.save", 1_000 * MS, 1_298 * MS)
    found = explained(0.67, between=span(0.67, saves, cpu=0.4, gc_s=0.368), saves=(save,))
    assert found.cause[:3] == ("gc", "", None) and found.doubt == COLLECTED_SOMEWHERE
    assert [other.cause.name for other in found.others] == ["CheckpointSaverHook"]


def test_code_beside_steps_of_another_run_that_has_few_samples_says_so() -> None:
    """ "No line of code was running for half of the time", where the stacks of the code covered less than half of it."""
    evaluation = OtherSteps("net/Mean", 10, 459 * MS, "", 1_000 * MS, 1_459 * MS)
    seen = span(1.1, stack(MAIN, LOAD, RUN, seconds=0.44), stack(MAIN, PACK, seconds=0.3), cpu=0.5, queue=0.1)
    found = explained(1.1, between=seen, other_runs=(evaluation,))
    assert found.cause[:3] == ("python", "", None) and found.doubt == TOO_FEW
