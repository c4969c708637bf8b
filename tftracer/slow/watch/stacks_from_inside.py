"""Reads a few stacks from inside the process while a turn (slow_turn.py) takes too long.

They show which threads exist at that moment; the record of the process outside (py-spy) does not. If stacks cannot be read from
outside, these are the only stacks. Frames are read with garbage collections off (frames_of_threads.py). ``faulthandler`` cannot
be used: it walks the list of threads without its lock, and crashes when TensorFlow ends a thread that called a Python function.
While another thread holds Python's lock, nothing is read. Only the watch's thread uses it.
"""

from __future__ import annotations

from collections import Counter, deque
from time import perf_counter_ns, thread_time_ns
from types import FrameType
from typing import Any

from tftracer.slow.watch.frames_of_threads import frames_of_threads
from tftracer.slow.watch.stack_samples import MAX_FRAMES, Stack, StackSample, is_within

#: Maximum average share of one core that sampling uses, and the maximum CPU time that it uses at once.
SHARE, BURST_NS = 0.003, 300_000_000
#: The second sample of a turn comes FIRST_NS after the first. Then the time between samples grows by the factor LONGER each time,
#: up to LONGEST_NS.
FIRST_NS, LONGER, LONGEST_NS = 30_000_000, 1.5, 2_000_000_000
#: If reading stacks takes longer than SURE_NS, the moment that they show is not known. A sample is tried at most TRIES times.
SURE_NS, TRIES = 20_000_000, 3
MAX_SAMPLES = 600
PROFILE_NS = 250_000_000  # time between two samples of a profile


class InsideStacks:
    def __init__(self) -> None:
        self.used_up = False  # whether sampling has used its share of a CPU
        self._samples: deque[StackSample] = deque(maxlen=MAX_SAMPLES)
        self._credit_ns = BURST_NS  # CPU time that sampling may use now
        self._credit_updated_ns = perf_counter_ns()
        #: (thread, start of turn) -> (when to sample next, time until the sample after that).
        self._turns: dict[tuple[int, int], tuple[int, int]] = {}
        self._profile_until_ns = 0  # until when to sample for a profile

    def tick(self, now_ns: int, overdue: dict[int, int]) -> None:
        """Take a sample if it is due. ``overdue``: thread whose turn takes too long -> when the turn began."""
        self._credit_ns = min(BURST_NS, self._credit_ns + int((now_ns - self._credit_updated_ns) * SHARE))
        self._credit_updated_ns = now_ns
        self._turns = {turn: self._turns.get(turn, (0, FIRST_NS)) for turn in overdue.items()}
        due = [turn for turn, (next_ns, _) in self._turns.items() if now_ns >= next_ns]
        wants_profile = now_ns < self._profile_until_ns and (not self._samples or now_ns - self._samples[-1].at_ns >= PROFILE_NS)
        self.used_up = self._credit_ns <= 0
        if (due or wants_profile) and not self.used_up:
            self._sample()
        for turn in due:
            interval_ns = self._turns[turn][1]
            self._turns[turn] = now_ns + interval_ns, min(int(interval_ns * LONGER), LONGEST_NS)

    def begin_profile(self, until_ns: int) -> None:
        self._profile_until_ns = until_ns

    def samples_between(self, start_ns: int, end_ns: int) -> list[StackSample]:
        return [sample for sample in self._samples if start_ns <= sample.at_ns <= end_ns]

    def profile(self, thread: int, spans: list[tuple[int, int]]) -> dict[str, Any]:
        """Return the stacks of a thread within spans, with seconds and counts. Each sample counts as PROFILE_NS."""
        times: Counter[Stack] = Counter()
        for sample in self._samples:
            if thread in sample.stacks and is_within(sample.at_ns, spans):
                times[sample.stacks[thread]] += 1
        return {"stacks": [[stack, count * PROFILE_NS / 1e9, count] for stack, count in times.most_common()]}

    def _sample(self) -> None:
        begun = thread_time_ns()
        for _ in range(TRIES):
            before_ns = perf_counter_ns()
            stacks = stacks_of_threads()
            at_ns = perf_counter_ns()
            if at_ns - before_ns < SURE_NS:  # otherwise Python's lock may have been released in between
                self._samples.append(StackSample(at_ns, stacks))
                break
        self._credit_ns -= thread_time_ns() - begun


def stacks_of_threads() -> dict[int, Stack]:
    """Return the current stack of each thread."""
    with frames_of_threads() as frames:
        return {thread: _stack_of(frame) for thread, frame in frames.items()}


def _stack_of(innermost: FrameType) -> Stack:
    frames: list[tuple[str, int, str]] = []
    frame: FrameType | None = innermost
    while frame is not None and len(frames) < MAX_FRAMES:
        frames.append((frame.f_code.co_filename, frame.f_lineno or 0, frame.f_code.co_name))
        frame = frame.f_back
    return tuple(reversed(frames))
