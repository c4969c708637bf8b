"""What is called the cause of a stall, and what is not."""

from __future__ import annotations

from typing import Any

from tftracer.capture.stall_causes import PYTHON_FUNCTIONS, Evidence, cause_of
from tftracer.slow.recorded import FoldedStack, Frame, HostChange

TF = "/usr/lib/python3/site-packages/"
MAIN = Frame("train.py", 10, "main", "", False)
LOAD = Frame("data.py", 20, "load", "", False)
NUMPY = Frame(TF + "numpy/core/sort.py", 5, "sort", "", True)
RUN = Frame(TF + "tensorflow/python/client/session.py", 1477, "_call_tf_sessionrun", "", True)
SAVE = Frame(TF + "tensorflow/python/training/saver.py", 99, "after_run", "CheckpointSaverHook", True)
EPOCH = Frame("callbacks.py", 7, "on_epoch_end", "MyLogger", False)
SCRIPT_OPS = Frame(TF + PYTHON_FUNCTIONS, 150, "__call__", "", True)


def stack(
    *frames: Frame, seconds: float = 0.2, waiting: float = 0.0, disk: float = 0.0, thread: str = "MainThread"
) -> FoldedStack:
    return FoldedStack(thread, frames, 40, seconds, 0, int(40 * waiting), int(40 * disk))


def evidence(*stacks: FoldedStack, inside: bool = False, **more: Any) -> Evidence:
    given = {"took_s": 0.3, "expected_s": 0.01, "limit_s": 0.03, "other_stacks": (), "gc_s": 0.0, "host": None} | more
    return Evidence(inside=inside, stacks=stacks, **given)


def host(**values: Any) -> HostChange:
    nothing = dict.fromkeys(HostChange.__annotations__)
    return HostChange(**(nothing | {"seconds": 0.3, "cpus": 2} | values))


def test_the_users_nearest_line_is_named_not_the_librarys() -> None:
    cause = cause_of(evidence(stack(MAIN, LOAD, NUMPY), stack(MAIN, seconds=0.05)))
    assert (cause.kind, cause.frame, cause.share) == ("python", LOAD, 0.8)


def test_a_thread_without_cpu_waits() -> None:
    assert cause_of(evidence(stack(MAIN, LOAD, waiting=0.9))).kind == "wait"
    assert cause_of(evidence(stack(MAIN, LOAD, waiting=0.2))).kind == "python"


def test_garbage_collection_comes_before_the_line_that_it_struck() -> None:
    cause = cause_of(evidence(stack(MAIN, LOAD), gc_s=0.28))
    assert cause.kind == "gc" and cause.frame == LOAD and cause.share is not None and cause.share > 0.9
    assert cause_of(evidence(stack(MAIN, LOAD), gc_s=0.02)).kind == "python"


def test_the_machine_is_blamed_only_if_the_step_had_been_quick_without_it() -> None:
    hogs = host(run_queue_s=0.28)
    assert cause_of(evidence(stack(MAIN, LOAD), host=hogs)).kind == "machine"
    assert cause_of(evidence(stack(MAIN, LOAD), host=hogs, took_s=0.4)).kind == "python"  # 0.12 s of its own is slow as well
    busy_itself = host(run_queue_s=0.28, on_cpu_s=0.12)
    assert cause_of(evidence(stack(MAIN, LOAD), host=busy_itself)).kind == "python"
    assert cause_of(evidence(stack(MAIN, LOAD), host=host(steal_s=0.58, on_cpu_s=0.3))).kind == "machine"
    asleep = host(steal_s=0.58, on_cpu_s=0.0)  # nothing was taken from a thread that slept
    assert cause_of(evidence(stack(MAIN, LOAD, waiting=1.0), host=asleep)).kind == "wait"
    assert cause_of(evidence(stack(MAIN, LOAD), host=host())).kind == "python"


def test_other_hooks_and_callbacks_are_named_by_their_class() -> None:
    cause = cause_of(evidence(stack(MAIN, RUN, SAVE, NUMPY, disk=0.9)))
    assert (cause.kind, cause.name, cause.frame) == ("hook", "CheckpointSaverHook", MAIN)
    cause = cause_of(evidence(stack(MAIN, EPOCH, LOAD, waiting=1.0)))
    assert (cause.kind, cause.name, cause.frame) == ("callback", "MyLogger", LOAD)


def test_a_python_function_of_the_graph_is_found_on_another_thread() -> None:
    called = stack(SCRIPT_OPS, LOAD, NUMPY, thread="thread 8")
    cause = cause_of(evidence(stack(MAIN, RUN, waiting=1.0), inside=True, other_stacks=(called,)))
    assert (cause.kind, cause.frame) == ("py_function", LOAD)
    assert cause_of(evidence(stack(SCRIPT_OPS, LOAD), inside=True)).kind == "py_function"  # or on this one
    idle = stack(LOAD, NUMPY, thread="a worker of the script's")
    assert cause_of(evidence(stack(MAIN, RUN, waiting=1.0), inside=True, other_stacks=(idle,))).kind == "unknown"


def test_inside_a_step_that_tensorflow_runs_no_line_is_guilty() -> None:
    cause = cause_of(evidence(stack(MAIN, RUN, waiting=1.0), inside=True))
    assert cause.kind == "unknown" and cause.frame is None
    assert cause_of(evidence(stack(MAIN, LOAD, waiting=1.0), inside=True)).kind == "wait"  # a step of the script's own


def test_other_processes_are_blamed_inside_a_step_that_nothing_else_explains() -> None:
    busy = host(machine_cpu_s=0.6, process_cpu_s=0.1)
    assert cause_of(evidence(stack(MAIN, RUN), inside=True, host=busy)).kind == "machine"
    assert cause_of(evidence(stack(MAIN, RUN), inside=True, host=host(machine_cpu_s=0.6, process_cpu_s=0.5))).kind == "unknown"
    assert cause_of(evidence(stack(MAIN, RUN), inside=True, host=host(machine_cpu_s=0.3, process_cpu_s=0.0))).kind == "unknown"


def test_a_disk_is_blamed_by_the_threads_state() -> None:
    assert cause_of(evidence(stack(MAIN, LOAD, disk=0.7))).kind == "disk"


def test_nothing_seen_is_unknown() -> None:
    assert cause_of(evidence()).kind == "unknown"
    halves = [stack(MAIN, Frame("a.py", line, name, "", False)) for line, name in enumerate("abc")]
    assert cause_of(evidence(*halves)).kind == "unknown"
