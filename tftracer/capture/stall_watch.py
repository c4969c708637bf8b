"""The thread ``tftracer-watch``: looks 50 times a second at the step under way, and samples stacks while one takes too long.

    watch = StallWatch(queue, 3.0)     # a step is slow from 3 medians on
    watch.start()
    ...
    watch.stop()                       # what was found is with the queue's slow records then

A training thread pays one store at the beginning of a step and one at its end (``StepQueue.under_way``). Nothing is sampled
until a step, or the time after one, has lasted 3 medians and 30 ms. What is found goes to ``StepQueue.slow`` as
slow/recorded.py has it. Each part (stacks, garbage collections, the host) switches itself off when it fails, and says
so; the watch as a whole does when it uses more CPU than it may. No signals and not faulthandler, whose timer crashed a training:
stacks are read while this thread holds the GIL (frames_of_threads.py).
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from tftracer.capture.cpu_allowance import CpuAllowance
from tftracer.capture.expected_traces import ExpectedTraces
from tftracer.capture.frame_names import FrameNames
from tftracer.capture.frames_of_threads import frames_of_threads
from tftracer.capture.gap_watch import GapWatch
from tftracer.capture.gc_pauses import GcPauses
from tftracer.capture.host_signals import HostSignals
from tftracer.capture.slow_steps import NEVER, WATCH_NS, SlowSteps
from tftracer.capture.stall_reports import StallReports
from tftracer.capture.step_queue import StepQueue
from tftracer.capture.switch_interval import SwitchInterval
from tftracer.capture.watch_reports import GcReports, HostReports
from tftracer.capture.watched_step import WatchedStep
from tftracer.capture.watched_threads import WatchedThreads

SECOND_NS = 1_000_000_000
#: Whatever is late, other threads run meanwhile.
LEAST_NS = 200_000
#: At the end, that the thread may take to notice.
JOIN_S = 2.0


class StallWatch:
    """``factor``: a step is slow when it takes so many medians, and 20 ms more than one."""

    def __init__(self, queue: StepQueue, factor: float) -> None:
        self._queue = queue
        self._under_way = queue.under_way
        self._steps = SlowSteps(factor)
        self._threads = WatchedThreads()
        names = FrameNames()
        traces = ExpectedTraces(queue.requests, self._steps, queue.settle)
        self._reports = StallReports(queue.slow, traces, self._threads, names)
        self._gaps = GapWatch(queue.slow, self._steps, self._threads, names, queue.settle)
        self._gc: GcPauses | None = None
        self._host: HostSignals | None = None
        self._gc_reports = GcReports(queue.slow, self._threads)
        self._host_reports = HostReports(queue.slow, self._steps, self._threads)
        self._stacks = False
        self._interval = SwitchInterval()
        self._watched: dict[int, WatchedStep] = {}  # by thread
        self._given_up: dict[int, int] = {}  # thread -> the mark that is watched no more
        self._due_ns = self._next_second_ns = self._tick_ns = 0
        self._looks, self._has_sampled = 0, False  # in this second
        self._stopping = False
        self._pid = os.getpid()
        self._thread: threading.Thread | None = None

    # ------------------------------------------------------------------------------------------------ starting, ending

    def start(self) -> None:
        self._stacks = self._has_stacks()
        self._gc = GcPauses(self._under_way, lambda error: self._part_failed("gc", error))
        self._gc.install()
        self._host = HostSignals()
        self._queue.slow_steps = self._steps
        self._thread = threading.Thread(target=self._run, name="tftracer-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """What has ended by now is reported. A second call does nothing."""
        thread, self._thread = self._thread, None
        if thread is None or os.getpid() != self._pid:
            return
        self._stopping = True
        if thread is not threading.current_thread():
            thread.join(JOIN_S)
        if not thread.is_alive():
            with contextlib.suppress(Exception):
                self._finish()
        self._release()

    def after_fork(self) -> None:
        """In a child: the thread is the parent's alone."""
        self._stopping = True
        self._thread = None
        self._queue.slow_steps = None
        self._release()

    @property
    def pending(self) -> int:
        """Slow steps that are found and not reported yet."""
        return len(self._steps.found)

    def _finish(self) -> None:
        """Report what came since the last round."""
        self._queue.settle()
        now = perf_counter_ns()
        self._close_ended(now)
        self._report()
        self._reports.cancel_traces()
        self._gaps.end(now, self._gc)
        if self._gc:
            self._gc_reports.report(self._gc)

    def _release(self) -> None:
        self._interval.restore()
        if self._gc:
            self._gc.remove()
        if self._host:
            self._host.close()

    def _has_stacks(self) -> bool:
        is_gil_enabled: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
        if not hasattr(sys, "_current_frames"):
            self._say("stacks", "This Python lacks sys._current_frames, which shows what threads run: slow steps have no lines.")
        elif not is_gil_enabled():
            self._say("stacks", "Slow steps have no lines: stacks of running threads cannot be read safely without the GIL.")
        else:
            return True
        return False

    # ---------------------------------------------------------------------------------------------------- its thread

    def _run(self) -> None:
        try:
            self._loop()
        except Exception as error:
            self._say("slow_steps", f"Slow steps are not looked for any more: {type(error).__name__}: {error}.")
            self._queue.slow_steps = None
            self._release()
        finally:
            self._reports.cancel_traces()

    def _loop(self) -> None:
        allowance = CpuAllowance()
        self._due_ns = perf_counter_ns()
        while not (self._stopping or self._queue.off):
            time.sleep(max(self._due_ns - perf_counter_ns(), LEAST_NS) * 1e-9)
            self._tick(allowance)
            if allowance.exceeded:
                self._say("slow_steps", "Slow steps are not looked for any more: looking for them took over 0.5% of a CPU core.")
                self._queue.slow_steps = None
                break
        self._interval.restore()

    def _tick(self, allowance: CpuAllowance) -> None:
        now = perf_counter_ns()
        self._tick_ns = int(allowance.tick_s * SECOND_NS)
        if self._is_quiet(now):
            self._looks += 1
            self._due_ns = now + self._tick_ns
            return
        has_ended = self._close_ended(now)
        self._open_overdue(now)
        if self._stacks:  # before anything that lets go of the GIL: a thread that held it may be at the guilty line still
            self._part("stacks", self._sample, now, allowance.used_up)
        if has_ended:
            self._queue.settle()  # at once, so that the next of its kind can be told ahead
        self._report()
        if now >= self._next_second_ns:
            self._next_second_ns = now + SECOND_NS
            self._each_second(now, allowance)
        self._due_ns = self._next_due(now)

    def _is_quiet(self, now_ns: int) -> bool:
        """Whether there is nothing to do: as it is nearly always, so it is to be found out with little work."""
        at_work = self._watched or self._gaps.sampling or self._steps.found or self._reports.has_periods
        if at_work or now_ns >= self._next_second_ns:
            return False
        marks = list(self._under_way.items())
        return all(age < WATCH_NS or age <= self._usual_ns(*mark) for mark in marks if (age := now_ns - abs(mark[1])))

    def _usual_ns(self, thread: int, mark: int) -> int:
        """How long what is under way on a thread may take before it is watched; one that was given up may for ever."""
        return NEVER if self._given_up.get(thread) == mark else self._steps.watch_after_ns(thread, mark > 0)

    def _close_ended(self, now_ns: int) -> bool:
        """Whether any has ended that was watched."""
        has_ended = False
        for thread, watched in list(self._watched.items()):
            mark = self._under_way.get(thread)
            if watched.is_over(mark, now_ns):
                del self._watched[thread]
                if mark == watched.mark:
                    self._given_up[thread] = mark
                self._part("host", watched.end, self._host)
                self._reports.ended(watched)
                has_ended = True
        return has_ended

    def _open_overdue(self, now_ns: int) -> None:
        for thread, mark in list(self._under_way.items()):
            if now_ns - abs(mark) > self._usual_ns(thread, mark) and thread not in self._watched:
                self._watched[thread] = WatchedStep(thread, self._threads.native_ids.get(thread), mark, self._due_ns)

    def _sample(self, now_ns: int, is_used_up: bool) -> None:
        due = [watched for watched in self._watched.values() if now_ns >= watched.due_ns]
        gaps = self._gaps.sampling if self._gaps.is_due(now_ns) else None
        if is_used_up:
            for watched in due:
                watched.leave_out(now_ns)
            if gaps:
                gaps.leave_out(now_ns)
        elif due or gaps:
            self._has_sampled = True
            with frames_of_threads() as frames:
                for watched in due:
                    watched.sample(frames, now_ns, self._threads.ours, self._host)
                if gaps:
                    state = self._host.state(self._threads.native_ids.get(gaps.thread)) if self._host else ""
                    self._gaps.sample(frames, now_ns, self._under_way, state, self._gc)
        if self._watched or self._gaps.sampling:
            self._interval.shorten()
        else:
            self._interval.restore()

    def _report(self) -> None:
        slow_steps = self._steps.found
        if slow_steps:
            self._close_ended(perf_counter_ns())  # they have ended meanwhile
        while slow_steps:
            self._reports.report(slow_steps.popleft(), self._gc)
        self._reports.request_traces()

    def _each_second(self, now_ns: int, allowance: CpuAllowance) -> None:
        allowance.update(0 if self._has_sampled else self._looks)
        self._looks, self._has_sampled = 0, False
        for thread, native_id in self._threads.refresh(list(self._under_way)):
            self._forget(thread, native_id)
        self._reports.end_periods()
        if self._gc:
            self._gc_reports.report(self._gc)
        if self._host:
            self._part("host", self._host_reports.report, self._host, self._gc, list(self._under_way))
        if self._stacks:
            self._part("stacks", self._look_at_gaps, now_ns)

    def _look_at_gaps(self, now_ns: int) -> None:
        sampling = self._gaps.sampling
        if sampling is not None and sampling.is_over(now_ns):
            self._gaps.end(perf_counter_ns(), self._gc)
        elif sampling is None:
            self._gaps.begin(now_ns, self._under_way, self._gc)

    def _next_due(self, now_ns: int) -> int:
        due = [now_ns + self._tick_ns, *(watched.due_ns for watched in self._watched.values())]
        if self._gaps.sampling:
            due.append(self._gaps.sampling.due_ns)
        return max(now_ns, min(due))

    def _forget(self, thread: int, native_id: int | None) -> None:
        """A thread has ended, or its number has gone to another."""
        if self._host and native_id:
            self._host.close_thread(native_id)
        self._steps.forget(thread)
        self._under_way.pop(thread, None)
        self._watched.pop(thread, None)
        self._given_up.pop(thread, None)

    # ------------------------------------------------------------------------------------------------------ failures

    def _part(self, name: str, work: Callable[..., object], *arguments: Any) -> None:
        """Do the work of one part; it is off from then on if that fails."""
        try:
            work(*arguments)
        except Exception as error:
            self._part_failed(name, error)

    def _part_failed(self, name: str, error: BaseException) -> None:
        if name == "stacks":
            self._stacks = False
            self._watched.clear()
            self._gaps.sampling = None
            self._interval.restore()
        elif name == "host" and self._host:
            self._host.close()
            self._host = None
        elif name == "gc":
            self._gc = None
        self._say(f"slow_{name}", f"{LACKS[name]}: {type(error).__name__}: {error}. Training goes on.")

    def _say(self, code: str, message: str) -> None:
        self._queue.other_problems[code] = message


#: What is missing when a part has switched itself off.
LACKS = {
    "stacks": "Slow steps have no lines any more",
    "host": "What the machine did during slow steps is not known any more",
    "gc": "Garbage collections during slow steps are not known any more",
}
