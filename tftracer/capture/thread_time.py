"""Where a training thread's time went between its steps: in the script, or in the tracer itself."""

from __future__ import annotations

from dataclasses import dataclass

from tftracer.session.recorded_steps import RunHandle, Traced, tracer_ns

#: Threads that are told apart.
MAX_THREADS = 1000


@dataclass(eq=False)
class ThreadTime:
    """One thread, as far as its steps have been counted."""

    last_end_ns: int
    outside_ns: int = 0  # in neither a step nor the tracer, since its first step

    def outside_before(self, run: RunHandle, thread: int, start_ns: int, end_ns: int, trace: Traced) -> int | None:
        """Count a step. Nanoseconds outside since the run's previous step; None if that one ran on another thread."""
        before, after = tracer_ns(trace)
        self.outside_ns += max(0, start_ns - before - self.last_end_ns)
        self.last_end_ns = end_ns + after
        outside = self.outside_ns - run.outside_ns if run.last_thread == thread else None
        run.last_thread, run.outside_ns = thread, self.outside_ns
        return outside


class ThreadTimes:
    """All training threads. Used by one thread at a time."""

    def __init__(self) -> None:
        self._times: dict[int, ThreadTime] = {}

    def outside_before(self, run: RunHandle, thread: int, start_ns: int, end_ns: int, trace: Traced) -> int | None:
        """As ``ThreadTime.outside_before``."""
        if thread not in self._times:
            if len(self._times) >= MAX_THREADS:
                self._times.clear()
            self._times[thread] = ThreadTime(start_ns)
        return self._times[thread].outside_before(run, thread, start_ns, end_ns, trace)
