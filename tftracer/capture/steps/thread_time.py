"""Measures how long a training thread was in neither a step nor the tracer, and how long it waited for input in that time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from tftracer.capture.recorded_steps import Traced, tracer_ns
from tftracer.run_handle import RunHandle

#: Maximum number of threads whose times are kept.
MAX_THREADS = 1000


class TimeBetweenSteps(NamedTuple):
    """How the thread spent the time since the run's previous step, in ns; None if the previous step was on another thread."""

    outside_ns: int | None  # in neither a step nor the tracer
    input_ns: int | None  # the part of outside_ns in which the thread waited for the next element of a dataset


@dataclass(eq=False)
class ThreadTime:
    """The time of one thread, up to its last counted step."""

    last_end_ns: int  # when its last step, and the tracer's work after it, ended (perf_counter)
    outside_ns: int = 0  # time in neither a step nor the tracer, since the thread's first step
    input_ns: int = 0  # the part of outside_ns in which the thread waited for the next element of a dataset


class ThreadTimes:
    """The times of all training threads. Only one thread at a time may call its methods."""

    def __init__(self) -> None:
        self._times: dict[int, ThreadTime] = {}

    def count_step(self, run: RunHandle, thread: int, start_ns: int, end_ns: int, trace: Traced) -> TimeBetweenSteps:
        """Count a step of a thread, and return the time since the run's previous step."""
        if thread not in self._times:
            if len(self._times) >= MAX_THREADS:
                self._times.clear()
            self._times[thread] = ThreadTime(start_ns)
        time = self._times[thread]
        before, after = tracer_ns(trace)
        time.outside_ns += max(0, start_ns - before - time.last_end_ns)
        time.last_end_ns = end_ns + after
        is_same_thread = run.last_thread == thread
        outside_ns, input_ns = time.outside_ns - run.outside_ns, time.input_ns - run.input_ns
        run.last_thread, run.outside_ns, run.input_ns = thread, time.outside_ns, time.input_ns
        return TimeBetweenSteps(outside_ns, min(input_ns, outside_ns)) if is_same_thread else TimeBetweenSteps(None, None)

    def add_input_wait(self, thread: int, start_ns: int, end_ns: int) -> None:
        """Count a wait for input, unless it began before the last step ended: eager loops wait within their steps.

        A wait before the thread's first step is ignored.
        """
        time = self._times.get(thread)
        if time is not None and start_ns >= time.last_end_ns:
            time.input_ns += end_ns - start_ns
