"""Slow steps as the watch hands them to the session, made without a watch."""

from __future__ import annotations

from typing import Any

from recording import step as record_step

from tftracer.run_handle import RunHandle
from tftracer.session.live import Recorder
from tftracer.slow.watch_results import (
    Cause,
    FoldedStack,
    Frame,
    GapProfile,
    GcPause,
    HostChange,
    HostSample,
    Period,
    Stall,
)

LIBRARY = "/usr/lib/python3/site-packages"
TRAIN = Frame("/home/me/train.py", 40, "main", "", False)
LOAD = Frame("/home/me/train.py", 88, "load_batch", "", False)
SORT = Frame(f"{LIBRARY}/numpy/_core/fromnumeric.py", 1034, "sort", "", True)
RUN = Frame(f"{LIBRARY}/tensorflow/python/training/monitored_session.py", 1483, "run", "", True)
SAVER = Frame(f"{LIBRARY}/tensorflow/python/training/basic_session_run_hooks.py", 620, "after_run", "CheckpointSaverHook", True)
SAVE = Frame(f"{LIBRARY}/tensorflow/python/training/saver.py", 1256, "save", "", True)
#: A change of the host in which nothing is known.
UNKNOWN = HostChange(1.0, *[None] * 12)
BUSY = UNKNOWN._replace(on_cpu_s=0.1, run_queue_s=0.88, cpus=2, machine_cpu_s=2.0, process_cpu_s=0.2)

LOADING = FoldedStack("MainThread", (TRAIN, LOAD, SORT), 50, 0.25)
SAVING = FoldedStack("MainThread", (TRAIN, RUN, SAVER, SAVE), 10, 0.05)
WAITING = FoldedStack("reader", (LOAD,), 3, 0.015)


def a_stall(run: RunHandle, number: int, **changes: Any) -> Stall:
    """Before step ``number`` 300 ms passed, most of them in load_batch()."""
    at = number * 2_000_000
    stall = Stall(
        run=run,
        step=number,
        call=number,
        inside=False,
        thread="MainThread",
        start_ns=at,
        end_ns=at + 300_000_000,
        expected_s=0.002,
        cause=Cause("python", "", LOAD, 0.83),
        stacks=(LOADING, SAVING),
        other_stacks=(WAITING,),
        gc_s=0.004,
        host=BUSY,
        is_traced=False,
    )
    return stall._replace(**changes)


def a_save(run: RunHandle, number: int, **changes: Any) -> Stall:
    cause = Cause("hook", "CheckpointSaverHook", SAVER, 0.9)
    return a_stall(run, number, cause=cause, stacks=(SAVING,), other_stacks=(), host=None, **changes)


def a_period(run: RunHandle, **changes: Any) -> Period:
    cause = Cause("hook", "CheckpointSaverHook", SAVER, 0.9)
    return Period(run, False, 97, 3, 0.31, cause, 291, 291, 388)._replace(**changes)


def a_profile(run: RunHandle) -> GapProfile:
    """Ten seconds, of which 30% passed between steps, a tenth of these in garbage collection."""
    return GapProfile(
        run=run,
        thread="MainThread",
        start_ns=0,
        end_ns=10_000_000_000,
        steps=500,
        inside_s=7.0,
        between_s=3.0,
        gc_s=0.3,
        stacks=(LOADING, SAVING),
        samples=60,
    )


def a_pause(at_ns: int = 4_000_000) -> GcPause:
    return GcPause(at_ns, at_ns + 12_000_000, 2)


def a_busy_second(at_ns: int = 2_000_000_000) -> HostSample:
    return HostSample(at_ns, BUSY)


def run_of(recorder: Recorder, steps: int = 300) -> RunHandle:
    """The run of some steps, which are counted and written."""
    for number in range(1, steps + 1):
        record_step(recorder, number)
    assert recorder.flush()
    (live,) = recorder.store.live_runs.values()
    return live.handle


def put(recorder: Recorder, *records: Any) -> None:
    """Hand these over, as the watch does, and wait until they are written."""
    for record in records:
        recorder.queue.slow.add(record)
    assert recorder.flush()


def record_slow_steps(recorder: Recorder) -> RunHandle:
    """A run with a save before each 97th step, one other slow step, a profile, and marks."""
    run = run_of(recorder)
    saves = [a_save(run, step) for step in (97, 194, 291)]
    put(recorder, a_stall(run, 50), *saves, a_period(run), a_profile(run), a_pause(), a_busy_second())
    return run
