"""Reads the process's memory once a second, proves growth, and then finds what grows. On the thread ``tftracer-memory``.

It reads one small file of Linux. Only when growth is proven, Python's objects are counted (three times, and
again later if that does not show what grows). Python's tracemalloc
would show lines, but is not used: it made steps 2 to 27 times as long, and its end crashed trainings on Python 3.11.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tftracer.memory_growth import growth_proof
from tftracer.memory_growth.cause_of_growth import find_cause
from tftracer.memory_growth.memory_curve import Curve, Reading
from tftracer.memory_growth.object_counts import MAX_HELD_S
from tftracer.memory_growth.saved_memory_growth import MAX_GROWTHS, Growth, MemoryFacts
from tftracer.trace.arrays.types import Float64

#: The shortest time that proves growth, in seconds, and the number of readings in it. ``TFTRACER_MEMORY_PROOF_S`` changes the
#: time.
PROOF_S, READINGS = 60.0, 60
#: WARM_UP readings after the first steps are left out; then growth is judged at every JUDGE-th reading.
WARM_UP, JUDGE = 15, 5
MIN_STEPS = 5  # number of the first steps, after which the WARM_UP readings begin
JOIN_S = 5.0
#: On a busy machine the cause may not be found at once. While the memory grows, it is searched for again after TRY_AGAIN times
#: the shortest time of a proof, MAX_TRIES times in all.
TRY_AGAIN, MAX_TRIES = 2, 3


def _proof_seconds() -> float:
    with contextlib.suppress(ValueError):
        return max(1.0, float(os.environ.get("TFTRACER_MEMORY_PROOF_S", PROOF_S)))
    return PROOF_S


class MemoryWatch:
    """Watches the memory of this process. ``steps``: the number of steps that have ended. ``functions``: the ConcreteFunctions
    that are alive. ``facts`` may be called from any thread."""

    def __init__(self, steps: Callable[[], int], functions: Callable[[], Sequence[Any]]) -> None:
        self._steps = steps
        self._functions = functions
        self._proof_s = _proof_seconds()
        self._period = self._proof_s / READINGS
        self._curve = Curve(self._period)
        self._growths: list[Growth] = []
        self._slope: growth_proof.Slope | None = None  # slope of the current growth, as it was proven; None: no growth now
        self._training_since: float | None = None  # when the judged time begins; None: first steps not yet over
        self._tries = 0  # how often the cause of the current growth was searched for
        self._next_try = 0.0  # when to search again if it was not found
        self._unknown = ""
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._pid = os.getpid()
        self._file = -1
        self._thread = threading.Thread(target=self._run, name="tftracer-memory", daemon=True)

    def start(self) -> None:
        try:
            self._file = os.open("/proc/self/statm", os.O_RDONLY)
            self._thread.start()
        except (OSError, RuntimeError):  # not Linux, or too many threads
            self._unknown = "system"

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive() and os.getpid() == self._pid:
            self._thread.join(JOIN_S)

    def facts(self) -> MemoryFacts:
        with self._lock:
            return MemoryFacts(tuple(self._curve.bins), tuple(self._growths), self._judged_s(), self._proof_s, self._unknown)

    # ------------------------------------------------------------------------------------------------------- its thread

    def _run(self) -> None:
        number = 0
        try:
            while not self._stopping.wait(self._period):
                self._read()
                number += 1
                if number % JUDGE == 0 and self._training_since is not None:
                    self._judge()
        except Exception as error:  # an unknown Python or TensorFlow
            self._unknown = f"failed: {type(error).__name__}: {error}"[:300]
        finally:
            os.close(self._file)

    def _read(self) -> None:
        _, resident, shared, *_ = os.pread(self._file, 256, 0).split()
        now, steps = time.time(), self._steps()
        with self._lock:
            self._curve.add(Reading(now, (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")))
        if self._training_since is None and steps >= MIN_STEPS:
            self._training_since = now + WARM_UP * self._period

    def _judged_s(self) -> float:
        """Return the seconds in which growth has been searched for."""
        since = self._training_since
        return max(0.0, self._curve.recent[-1].at - since) if since is not None and self._curve.recent else 0.0

    def _judge(self) -> None:
        at, low = self._curve.lows(self._training_since or 0.0)
        if not len(at):
            return
        if self._slope is not None:
            self._follow(at, low)
            return
        slope = growth_proof.growth(at, low, self._proof_s, self._growths[-1].until if self._growths else 0.0)
        if slope is not None:
            self._begin(slope)

    def _follow(self, at: Float64, low: Float64) -> None:
        assert self._slope is not None
        has_stopped = growth_proof.has_stopped(at, low, self._slope, self._proof_s)
        since = self._slope.since
        now = (
            growth_proof.until_it_stopped(at, low, since) if has_stopped else growth_proof.slope_of(at, low, since, float(at[-1]))
        )
        with self._lock:
            growth = self._growths[-1]
            growth = growth if now is None or growth_proof.has_jumped(now) else growth.grown(now)
            self._growths[-1] = replace(growth, is_growing=not has_stopped)
        if has_stopped:
            self._slope = None
        elif not growth.things and self._tries < MAX_TRIES and float(at[-1]) >= self._next_try:
            self._find_cause(growth.rate, may_list=growth.held_s <= MAX_HELD_S)

    def _begin(self, slope: growth_proof.Slope) -> None:
        """Add a growth and find what grows. The memory is not read meanwhile, because counting objects takes memory itself."""
        with self._lock:
            self._growths = [*self._growths[-MAX_GROWTHS + 1 :], Growth.of(slope)]
        self._slope, self._tries = slope, 0
        self._find_cause(slope.rate)

    def _find_cause(self, rate: float, may_list: bool = True) -> None:
        finding = find_cause(rate, self._stopping.wait, self._period, functions=self._functions, may_list=may_list)
        self._tries += 1
        self._next_try = time.time() + TRY_AGAIN * self._proof_s
        if finding is not None:
            with self._lock:
                growth = self._growths[-1]
                lists, held_s = growth.lists + finding.lists, growth.held_s + finding.held_s
                self._growths[-1] = growth.explained(finding._replace(lists=lists, held_s=held_s))
