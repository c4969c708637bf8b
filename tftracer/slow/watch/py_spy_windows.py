"""Records the stacks of another process's threads with py-spy, in overlapping windows that are kept for some minutes.

py-spy reads the process's memory 2 to 4 times a second and never stops it (``--nonblocking``). A window ends after a minute, or
earlier if an answer waits for it. The next window begins before it ends.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import threading
import time
from bisect import bisect_left, bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from typing import Any

from tftracer.slow.watch.stack_samples import MAX_FRAMES, MAX_STACKS, Stack, StackSample, is_within
from tftracer.slow.watch.times_of_samples import NEVER, SampleClock, slot_of

#: A line number above this shows that a stack was misread.
MAX_LINE = 10_000_000
#: Samples a second: FIRST_RATE in windows that begin in the first minute, when lines between steps are profiled, RATE in later
#: windows. In a TensorFlow process, a sample takes some 2 ms, and the start of a window 20 to 30 ms. While a turn takes too long,
#: outside_process.py and stacks_from_inside.py read stacks more often.
FIRST_RATE, RATE = 4, 2
WINDOW_S, OVERLAP_NS = 60, 1_100_000_000
#: A window may be ended early once in HURRY_APART_NS on average, and at most HURRIES times in a row.
HURRY_APART_NS, HURRIES = 30_000_000_000, 20
MAX_WINDOWS = 20
#: After this number of failures in a row, py-spy is not started again.
MAX_FAILURES = 3
MAX_BYTES = 64 << 20  # maximum size of a window's record
#: The outermost functions of Python's own threads: of the main thread, and of those that ``threading`` has started.
ROOTS = ("<module>", "_run_module_as_main", "_bootstrap")
PR_SET_PDEATHSIG = 1
DUMP_S = 5.0  # time limit for a dump
SAMPLING = b"Sampling process"  # py-spy prints this when it begins to sample


class Window:
    """One execution of py-spy."""

    def __init__(self, pid: int, py_spy: str, clock: SampleClock, rate: int) -> None:
        self._clock = clock
        self.every_ns = 10**9 // rate
        self._begun_ns = time.perf_counter_ns()
        self.intervals: dict[int, list[tuple[int, int, Stack]]] = {}  # thread -> [(from, until, stack)]
        self.sampled_ns: list[int] = []  # times of the samples in which the stack of any thread had changed
        self.start_ns = self.stop_ns = 0
        self.problem = ""
        self._file = os.memfd_create("tftracer-window")
        command = [py_spy, "record", "--nonblocking", "--idle", "--rate", str(rate), "--duration", str(WINDOW_S)]
        command += ["--format", "chrometrace", "--output", f"/dev/fd/{self._file}", "--pid", str(pid)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_prepare_child,
            pass_fds=[self._file],
        )
        self._output = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def is_sampling(self) -> bool:
        return bool(self.start_ns)

    def interrupt(self) -> None:
        """Make py-spy end and write its record."""
        if not self.stop_ns:
            self.stop_ns = time.perf_counter_ns()
            self._process.send_signal(signal.SIGINT)

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def collect(self) -> None:
        """Read the record of an ended window."""
        self._reader.join()
        try:
            if self._process.returncode:
                raise ValueError(f"py-spy could not read it: {reason(self._output.decode(errors='replace'))}")
            size = os.fstat(self._file).st_size
            if size > MAX_BYTES:
                raise ValueError("py-spy wrote more than 64 MB")
            self._convert_events(json.loads(os.pread(self._file, size, 0)))
        except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
            self.problem = str(error) or type(error).__name__
        self.close()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()
        os.close(self._file)

    def _read(self) -> None:
        """Read py-spy's output, on a separate thread. Its times count from about the moment when it prints that it samples."""
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            while data := os.read(self._process.stdout.fileno(), 1 << 16):
                now = time.perf_counter_ns()
                self._output = (self._output + data)[-(1 << 16) :]
                if not self.start_ns and SAMPLING in self._output:
                    self.start_ns = now

    def _convert_events(self, events: list[dict[str, Any]]) -> None:
        """Convert py-spy's events to intervals.

        A frame begins ("B") or ends ("E") on a thread if a sample differs from the previous sample. A sample that shows the
        watch's thread in a slot (times_of_samples.py) was taken before the thread left the slot.
        """
        slots = ((int(event["ts"]) * 1000, slot_of(str(event["name"]))) for event in events if event["ph"] == "B")
        seen = [(since, slot) for since, slot in slots if slot is not None]
        self.start_ns = self._clock.offset(seen, self._begun_ns, self.start_ns) or self.start_ns
        stacks: dict[int, list[tuple[str, int, str]]] = {}
        since: dict[int, int] = {}
        at, slot = 0, None
        for sample in _samples(events, self.every_ns // 1000):
            stamp_ns = self.start_ns + int(sample[-1]["ts"]) * 1000
            slot = next(
                (new for event in sample if event["ph"] == "B" and (new := slot_of(str(event["name"]))) is not None), slot
            )
            at = max(at + 1, stamp_ns if slot is None else self._clock.last_moment(slot, at, stamp_ns))
            self.sampled_ns.append(at)
            for event in sample:
                thread = int(event["tid"])
                stack = stacks.setdefault(thread, [])
                if at > since.setdefault(thread, at):
                    self._add(thread, since[thread], at, stack)
                    since[thread] = at
                if event["ph"] == "B":
                    arguments = event.get("args") or {}
                    stack.append((str(arguments.get("filename", "")), int(arguments.get("line", 0)), str(event["name"])))
                elif stack:
                    stack.pop()
        if self.sampled_ns and not any(stacks.values()):  # the last one is no sample: at the end, py-spy closes all stacks
            self.sampled_ns.pop()
        for thread, intervals in self.intervals.items():
            if any(has_root(stack) for *_, stack in intervals):
                self.intervals[thread] = [each for each in intervals if has_root(each[2]) or len(each[2]) == MAX_FRAMES]

    def _add(self, thread: int, start: int, end: int, stack: list[tuple[str, int, str]]) -> None:
        if stack and is_whole(stack):
            self.intervals.setdefault(thread, []).append((start, end, tuple(stack[-MAX_FRAMES:])))


def _samples(events: list[dict[str, Any]], every_us: int) -> Iterator[list[dict[str, Any]]]:
    """Yield the events of each sample.

    py-spy writes the events thread by thread, and for each thread first those that end frames. The time stamp of a sample is
    the time of writing: on a busy machine it is too late, and several samples may have the same time stamp.
    """
    sample: list[dict[str, Any]] = []
    threads: set[int] = set()
    for event in events:
        last = sample[-1] if sample else event
        thread = event["tid"]
        is_next = thread in threads and (thread != last["tid"] or (event["ph"], last["ph"]) == ("E", "B"))
        if is_next or event["ts"] - last["ts"] > every_us // 2:
            yield sample
            sample, threads = [], set()
        sample.append(event)
        threads.add(thread)
    if sample:
        yield sample


def reason(output: str) -> str:
    """Return why py-spy failed: the innermost cause in its output ("Error: ...", "Caused by:", "0: ...", perhaps a backtrace)."""
    message, _, causes = output.partition("Stack backtrace:")[0].partition("Caused by:")
    lines = (causes or message).strip().splitlines() or ["it says nothing"]
    return re.sub(r"^\s*(\d+|Error): ", "", lines[-1] if causes else lines[0])


class Windows:
    """Begins and ends windows, and answers questions from the windows that have ended. Only one thread may use it."""

    def __init__(self, pid: int, py_spy: str, clock: SampleClock) -> None:
        self._clock = clock
        self.broken = "" if py_spy else "py-spy is not installed"
        self._pid = pid
        self._py_spy = py_spy
        self._ended: deque[Window] = deque(maxlen=MAX_WINDOWS)
        self._running: list[Window] = []
        self._failures = 0
        self._hurries = HURRIES  # how many windows may be ended early now
        self._hurry_ns = 0  # when a window was ended early last
        self._start_ns = time.perf_counter_ns()

    def tick(self, now_ns: int) -> None:
        """Begin and end windows."""
        for window in [window for window in self._running if window.has_ended()]:
            self._running.remove(window)
            window.collect()
            self._count_failure(window.problem) if window.problem else self._keep(window)
        if self.broken:
            return
        newest = self._running[-1] if self._running else None
        if newest is None or (newest.is_sampling() and now_ns - newest.start_ns > WINDOW_S * 10**9 - OVERLAP_NS):
            self._begin()
        if len(self._running) > 1 and self._running[-1].is_sampling():
            self._running[0].interrupt()

    def _begin(self) -> None:
        is_early = time.perf_counter_ns() - self._start_ns < WINDOW_S * 10**9
        try:
            self._running.append(Window(self._pid, self._py_spy, self._clock, FIRST_RATE if is_early else RATE))
        except OSError as error:
            self._count_failure(str(error))

    def _keep(self, window: Window) -> None:
        self._failures = 0
        self._ended.append(window)

    def _count_failure(self, problem: str) -> None:
        self._failures += 1
        if self._failures >= MAX_FAILURES:
            self.broken = problem

    def hurry(self, until_ns: int, now_ns: int, at_any_cost: bool = False) -> None:
        """End the running window early, but not too often, because an answer waits for samples from before ``until_ns``.

        ``at_any_cost``: end it now, however often, and without first beginning the next window.
        """
        newest = self._running[-1] if self._running else None
        if newest is None or len(self._running) > 1 or not newest.is_sampling():
            return
        if now_ns - self._hurry_ns > HURRY_APART_NS:
            self._hurries = min(HURRIES, self._hurries + (now_ns - self._hurry_ns) // HURRY_APART_NS)
        if at_any_cost:
            newest.interrupt()
        elif self._hurries and now_ns - max(until_ns, newest.start_ns) > 2 * newest.every_ns:
            self._hurries, self._hurry_ns = self._hurries - 1, now_ns
            self._begin()

    def read_until_ns(self) -> int:
        """Return the time up to which all samples have been read."""
        return min((window.start_ns for window in self._running if window.start_ns), default=NEVER) if self._ended else 0

    # ---------------------------------------------------------------------------------------------------------- answers

    def samples_between(self, start_ns: int, end_ns: int) -> Iterator[StackSample]:
        """Yield the samples within a span. Where windows overlap, yield only those of the newest window."""
        for window in reversed(self._ended):
            for at in _between(window.sampled_ns, start_ns, end_ns):
                yield _stack_sample(window, at)
            if window.start_ns <= start_ns:
                return
            end_ns = min(end_ns, window.start_ns)

    def profile(self, thread: int, spans: list[tuple[int, int]]) -> dict[str, Any]:
        """Return the stacks within many short spans, with seconds and counts.

        Each sample counts as the time between two samples.
        """
        lengths: Counter[Stack] = Counter()
        times: Counter[Stack] = Counter()
        for window in self._ended:
            for start, end, stack in window.intervals.get(thread, ()):
                if count := count_samples(window.sampled_ns, start, end, spans):
                    lengths[stack] += count * window.every_ns
                    times[stack] += count
        return {"stacks": [[stack, length / 1e9, times[stack]] for stack, length in lengths.most_common(MAX_STACKS)]}


def count_samples(sampled_ns: list[int], start_ns: int, end_ns: int, spans: list[tuple[int, int]]) -> int:
    """Return how many samples from ``start_ns`` until before ``end_ns`` lie in one of the spans.

    The times between samples differ, so the number cannot be computed from the length of the spans.
    """
    return sum(is_within(at, spans) for at in _between(sampled_ns, start_ns, end_ns))


def _between(sampled_ns: list[int], start_ns: int, end_ns: int) -> list[int]:
    return sampled_ns[bisect_left(sampled_ns, start_ns) : bisect_left(sampled_ns, end_ns)]


def _stack_sample(window: Window, at_ns: int) -> StackSample:
    stacks: dict[int, Stack] = {}
    unchanged = set()
    for thread, intervals in window.intervals.items():
        index = bisect_right(intervals, (at_ns, NEVER)) - 1
        if index >= 0 and intervals[index][1] > at_ns:
            stacks[thread] = intervals[index][2]
            if intervals[index][0] < at_ns:
                unchanged.add(thread)
    return StackSample(at_ns, stacks, frozenset(unchanged), is_of_all=False)


#: (sample, thread -> its name).
Dump = tuple[StackSample, dict[int, str]]


def dump(pid: int, py_spy: str, clock: SampleClock) -> Dump | None:
    """Read the current stacks, and the names of the threads; None if they cannot be read."""
    try:
        command = [py_spy, "dump", "--nonblocking", "--json", "--pid", str(pid)]
        start = time.perf_counter_ns()
        completed = subprocess.run(command, capture_output=True, timeout=DUMP_S, check=True, stdin=subprocess.DEVNULL)
        end = time.perf_counter_ns()
        threads = json.loads(completed.stdout)
        stacks = {int(thread["thread_id"]): _stack_of(thread["frames"]) for thread in threads}
        stacks = {thread: stack for thread, stack in stacks.items() if is_whole(stack)}
        slots = [slot for stack in stacks.values() for *_, function in stack if (slot := slot_of(function)) is not None]
        at = clock.when(slots[0], start, end) if slots else (start + end) // 2
        return StackSample(at, stacks), {int(thread["thread_id"]): str(thread["thread_name"] or "") for thread in threads}
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
        return None


def is_whole(stack: Sequence[tuple[str, int, str]]) -> bool:
    """Return whether all line numbers are possible. py-spy does not stop the thread, so it may read memory that has changed."""
    return all(0 <= line < MAX_LINE for _, line, _ in stack)


def has_root(stack: Stack) -> bool:
    """Return whether the outermost frame is that of one of Python's own threads.

    While a function ends, py-spy may miss the frames of its callers: the rest of the stack might show only a library's line.
    """
    return stack[0][2] in ROOTS


def _stack_of(frames: list[dict[str, Any]]) -> Stack:
    """Return the frames, the outermost first."""
    return tuple((str(frame["filename"]), int(frame["line"]), str(frame["name"])) for frame in frames[:MAX_FRAMES])[::-1]


def _prepare_child() -> None:
    """Prepare py-spy's process: SIGINT ends it, but Ctrl-C in a terminal does not, and it ends with its parent."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.setpgid(0, 0)
