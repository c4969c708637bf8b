"""Keeps when TensorFlow called Python functions (``tf.py_function``, ``tf.numpy_function``, generators of ``tf.data``).

The threads that run these functions add the calls (capture/loops/python_functions.py). The watch's thread reads them: for how
much longer than usual Python functions ran in a span of time. Short calls soon after each other are kept as one entry.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from itertools import takewhile
from time import perf_counter_ns
from types import CodeType
from typing import Any, NamedTuple

from tftracer.slow.cause.frame_names import FrameNames, may_call_python
from tftracer.slow.cause.observed import Span
from tftracer.slow.watch.gc_pauses import use_of_thread, used_since
from tftracer.slow.watch.slow_turn import SlowTurn

#: Maximum number of entries of a thread, and of threads.
MAX_ENTRIES, MAX_THREADS = 2048, 64
#: A call is added to the last entry if it has the same function, begins at most NEXT_NS after it, and the entry then has at most
#: ENTRY_NS. So the entries of a thread last for at least 20 seconds.
NEXT_NS, ENTRY_NS = 10_000_000, 50_000_000
#: The usual times are those of this time before a span.
USUAL_NS = 20 * 10**9


class Entry(NamedTuple):
    """One or several calls of a function."""

    start_ns: int
    end_ns: int
    busy_ns: int  # sum of the calls' lengths; of calls that never waited, only of their CPU times
    cpu_ns: int  # sum of the calls' CPU times
    calls: int
    code: CodeType | None  # of the script's function; None: not known

    def share_within(self, start_ns: int, end_ns: int) -> float:
        """Return the share of the entry's time that is within a span."""
        return max(0, min(self.end_ns, end_ns) - max(self.start_ns, start_ns)) / max(1, self.end_ns - self.start_ns)

    def busy_within(self, start_ns: int, end_ns: int) -> float:
        """Return the nanoseconds of the calls within a span."""
        return self.busy_ns * self.share_within(start_ns, end_ns)


class Functions(NamedTuple):
    """The Python functions that TensorFlow called within a span, on the thread that spent most time in them."""

    more_s: float  # seconds beyond the usual, without those in which the thread only had no CPU
    cpu_s: float  # CPU time of these functions on all threads
    is_called: bool  # whether any thread called any
    code: CodeType | None  # of the function with the most time


class FunctionTimes:
    """``begin`` and ``end`` are called on the threads that run the functions, the other methods on the watch's thread."""

    def __init__(self) -> None:
        self.since_ns: int | None = None  # from when on calls are measured; None: they are not
        self._entries: dict[int, deque[Entry]] = {}
        #: Thread -> start of its call, what the thread had used then (``use_of_thread``), and the function.
        self._running: dict[int, tuple[int, Any, CodeType | None]] = {}

    def start(self) -> None:
        self.since_ns = perf_counter_ns()

    def begin(self, thread: int, code: CodeType | None) -> None:
        self._running[thread] = perf_counter_ns(), use_of_thread(), code

    def end(self, thread: int) -> None:
        start_ns, before, code = self._running.pop(thread)
        end_ns = perf_counter_ns()
        cpu_ns, has_waited = used_since(before)
        busy_ns = end_ns - start_ns if has_waited else min(cpu_ns, end_ns - start_ns)
        entry = Entry(start_ns, end_ns, busy_ns, cpu_ns, 1, code)
        entries = self._entries.get(thread)
        if entries is None:
            if len(self._entries) >= MAX_THREADS:
                self._forget_oldest()
            self._entries[thread] = deque([entry], maxlen=MAX_ENTRIES)  # never empty, because other threads read the last entry
            return
        last = entries[-1]
        if last.code is code and start_ns - last.end_ns <= NEXT_NS and end_ns - last.start_ns <= ENTRY_NS:
            entries[-1] = Entry(last.start_ns, end_ns, last.busy_ns + busy_ns, last.cpu_ns + cpu_ns, last.calls + 1, code)
            return
        if len(entries) == MAX_ENTRIES:
            self.since_ns = max(self.since_ns or 0, entries[0].end_ns)
        entries.append(entry)

    def is_running(self, thread: int) -> bool:
        """Return whether a thread is in a call: a call within it is a part of it."""
        return thread in self._running

    def _forget_oldest(self) -> None:
        """Forget the thread whose last call ended first. Other threads may do so at the same time."""
        ends = {thread: entries[-1].end_ns for thread in list(self._entries) if (entries := self._entries.get(thread))}
        oldest = min(ends, key=ends.__getitem__)
        self._entries.pop(oldest, None)
        self.since_ns = max(self.since_ns or 0, ends[oldest])

    def within(self, start_ns: int, end_ns: int) -> Functions | None:
        """Return the functions within a span, without calls that had not ended then; None if they are not known."""
        if self.since_ns is None or start_ns < self.since_ns:
            return None
        earlier: list[Entry] = []
        longest: list[Entry] = []
        longest_ns, cpu_ns, is_called = 0.0, 0.0, False
        for entries in map(list, list(self._entries.values())):
            newest = list(takewhile(lambda entry: entry.end_ns > start_ns - USUAL_NS, reversed(entries)))
            earlier += (entry for entry in newest if entry.end_ns <= start_ns)
            overlapping = [entry for entry in newest if entry.start_ns < end_ns and entry.end_ns > start_ns]
            cpu_ns += sum(entry.cpu_ns * entry.share_within(start_ns, end_ns) for entry in overlapping)
            # If a call ends after the span, nothing in the span waited for its result.
            inner = [entry for entry in overlapping if entry.calls > 1 or entry.end_ns <= end_ns]
            busy_ns = sum(entry.busy_within(start_ns, end_ns) for entry in inner)
            is_called = is_called or bool(inner)
            if busy_ns > longest_ns:
                longest, longest_ns = inner, busy_ns
        return Functions(
            more_s=max(0.0, longest_ns - self._usual_ns(longest, earlier, start_ns, end_ns)) * 1e-9,
            cpu_s=cpu_ns * 1e-9,
            is_called=is_called,
            code=max(longest, key=lambda entry: entry.busy_within(start_ns, end_ns)).code if longest else None,
        )

    def _usual_ns(self, within: list[Entry], earlier: list[Entry], start_ns: int, end_ns: int) -> float:
        """Return how long these calls in a span would usually have taken.

        Functions of an input pipeline run all the time, ahead of the steps: calls of the usual length, or as much time in calls
        as usual, made no step slow.
        """
        if not earlier:
            return 0.0
        first_ns = max(self.since_ns or 0, start_ns - USUAL_NS)
        share = min(1.0, sum(entry.busy_ns for entry in earlier) / max(1, start_ns - first_ns))
        usual_ns = 0.0
        for entry in within:
            alike = [other for other in earlier if other.code is entry.code]
            calls = sum(other.calls for other in alike)
            if calls:
                usual_ns += entry.calls * sum(other.busy_ns for other in alike) / calls
        return min(share * (end_ns - start_ns), usual_ns)


def with_functions(
    between: Span, inside: Span, turn: SlowTurn, times: FunctionTimes, names: FrameNames
) -> tuple[Span, Span, bool]:
    """Add to both spans of a turn the time in Python functions that TensorFlow called.

    Also return whether Python code may have run in the step: such functions, or the script's own code.
    """
    spans, may_have_called = [], may_call_python()
    for span, (start_ns, end_ns) in zip((between, inside), turn.spans):
        functions = times.within(start_ns, end_ns)
        if functions is not None:
            code, may_have_called = functions.code, functions.is_called
            function = names.frame(code.co_filename, code.co_firstlineno, code.co_name) if code else None
            span = replace(span, functions_s=functions.more_s, functions_cpu_s=functions.cpu_s, function=function)
        spans.append(span)
    return spans[0], spans[1], turn.run.has_python or may_have_called
