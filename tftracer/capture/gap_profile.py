"""The time between steps by line: some 20 samples a second for 10 s, taken by the watch's thread.

Samples tell lines alone. What part of the time lies between steps comes from the clocks of the steps, garbage collection from
``gc.callbacks``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import FrameType

from tftracer.capture.frame_names import FrameNames
from tftracer.capture.gc_pauses import GcPauses
from tftracer.capture.other_threads import OtherThreads
from tftracer.capture.slow_steps import Sums
from tftracer.capture.stack_sampler import LATE_NS, Stack, StackCounts, stack_of
from tftracer.session.recorded_steps import RunHandle
from tftracer.slow.recorded import GapProfile

LENGTH_NS = 10_000_000_000
#: Between two samples on average; each waits for a random time around it, so that no loop keeps in step with it.
EVERY_NS = 50_000_000
#: The stacks of other threads are taken with each so many samples.
OTHERS_EACH = 4


class GapSampling:
    """One profile on its way. Used by the watch's thread."""

    def __init__(self, run: RunHandle, thread: int, asked_by_user: bool, now_ns: int, sums: Sums, gc_between_ns: int) -> None:
        self.thread = thread
        self._run = run
        self.due_ns = now_ns
        self._asked_by_user = asked_by_user
        self._start_ns = now_ns
        self._sums = sums
        self._gc_ns = gc_between_ns
        self._stacks = StackCounts()
        self._others = OtherThreads()
        self._taken = 0
        self._not_taken = 0

    def is_over(self, now_ns: int) -> bool:
        return now_ns - self._start_ns >= LENGTH_NS

    def sample(
        self, frames: Mapping[int, FrameType], now_ns: int, mark: int, state: str, ours: frozenset[int], gc: GcPauses | None
    ) -> None:
        """``mark``: as in StepQueue.under_way when the frames were taken; ``ours``: threads of the tracer."""
        due, self.due_ns = self.due_ns, now_ns + int(EVERY_NS * random.uniform(0.6, 1.4))
        self._taken += 1
        if mark < 0 and -mark <= due and not (gc and gc.covers(due)):  # between steps already when it was due
            stack: Stack = stack_of(frames.get(self.thread))
            if stack:
                self._stacks.add(stack, 1.0, now_ns - due > LATE_NS, state)
        if self._taken % OTHERS_EACH == 0:
            self._others.sample(frames, ours | {self.thread}, OTHERS_EACH * EVERY_NS * 1e-9)

    def leave_out(self, now_ns: int) -> None:
        """Not sampled: the watch has used its share of the CPU."""
        self._not_taken += 1
        self.due_ns = now_ns + EVERY_NS

    def profile(
        self, now_ns: int, sums: Sums, gc_between_ns: int, names: FrameNames, thread_names: Mapping[int, str]
    ) -> GapProfile:
        """``sums``, ``gc_between_ns``: of its thread, now."""
        between_s = max(0, sums.between_ns - self._sums.between_ns) * 1e-9
        gc_s = max(0, gc_between_ns - self._gc_ns) * 1e-9
        name, counts = thread_names.get(self.thread, ""), self._stacks
        scale = max(0.0, between_s - gc_s) / counts.seconds if counts.seconds else 0.0
        return GapProfile(
            run=self._run,
            thread=name,
            asked_by_user=self._asked_by_user,
            start_ns=self._start_ns,
            end_ns=now_ns,
            steps=sums.steps - self._sums.steps,
            inside_s=(sums.inside_ns - self._sums.inside_ns) * 1e-9,
            between_s=between_s,
            gc_s=gc_s,
            stacks=counts.folded(names, name, scale),
            other_stacks=self._others.folded(names, thread_names),
            samples=counts.samples,
            late_samples=counts.late,
            stacks_left_out=counts.stacks_left_out,
            samples_left_out=counts.samples_left_out + self._not_taken,
        )
