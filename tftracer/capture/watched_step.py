"""A step, or a time between two, that takes long: what is sampled of it until it ends. Used by the watch's thread."""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType

from tftracer.capture.frame_names import FrameNames
from tftracer.capture.host_signals import HostReading, HostSignals
from tftracer.capture.other_threads import OtherThreads
from tftracer.capture.stack_sampler import LATE_NS, StackCounts, stack_of
from tftracer.slow.recorded import FoldedStack, HostChange

#: (samples so far, time to the next): a stall that lasts longer is sampled less often.
RATES = [(100, 5_000_000), (500, 20_000_000), (1 << 62, 100_000_000)]
#: It is given up then: a script that has ended its training, and does something else.
LONGEST_NS = 60_000_000_000
#: Other threads are looked at so often at most.
OTHERS_NS = 20_000_000


class WatchedStep:
    def __init__(self, thread: int, native_id: int | None, mark: int, due_ns: int) -> None:
        self.thread = thread
        self.native_id = native_id
        self.mark = mark  # as in StepQueue.under_way
        self.due_ns = due_ns
        self.not_taken = 0
        self.host: HostChange | None = None
        self._host_before: HostReading | None = None
        self._last_ns = self._others_last_ns = 0
        self._stacks = StackCounts()
        self._others = OtherThreads()

    def is_over(self, mark: int | None, now_ns: int) -> bool:
        return mark != self.mark or now_ns - abs(self.mark) > LONGEST_NS

    def sample(self, frames: Mapping[int, FrameType], now_ns: int, ours: frozenset[int], host: HostSignals | None) -> None:
        """``ours``: the threads of the tracer, which are of no interest."""
        stack = stack_of(frames.get(self.thread))
        late_ns = min(now_ns - self.due_ns, now_ns - abs(self.mark))
        seconds = max(now_ns - self._last_ns if self._last_ns else late_ns, 1_000_000) * 1e-9
        if not self._last_ns or now_ns - self._others_last_ns >= OTHERS_NS:
            passed = (now_ns - self._others_last_ns) * 1e-9 if self._last_ns else seconds
            self._others.sample(frames, ours | {self.thread}, passed)
            self._others_last_ns = now_ns
        # Reading files lets go of the GIL: not before the stacks are taken.
        state = host.state(self.native_id) if host else ""
        if stack:
            self._stacks.add(stack, seconds, late_ns > LATE_NS, state)
        if host and self._host_before is None:
            self._host_before = host.read(self.native_id)
        self._last_ns = now_ns
        self._set_due(now_ns)

    def leave_out(self, now_ns: int) -> None:
        """Not sampled: the watch has used its share of the CPU."""
        self.not_taken += 1
        self._set_due(now_ns)

    def end(self, host: HostSignals | None) -> None:
        if host and self._host_before:
            self.host = host.change(self._host_before, host.read(self.native_id))

    def folded(
        self, names: FrameNames, thread_names: Mapping[int, str]
    ) -> tuple[tuple[FoldedStack, ...], tuple[FoldedStack, ...]]:
        """(stacks of its thread, stacks of the others)."""
        name = thread_names.get(self.thread, "")
        return self._stacks.folded(names, name), self._others.folded(names, thread_names)

    @property
    def sampled_s(self) -> float:
        return self._stacks.seconds

    @property
    def stacks_left_out(self) -> int:
        return self._stacks.stacks_left_out

    @property
    def samples_left_out(self) -> int:
        return self._stacks.samples_left_out + self.not_taken

    def _set_due(self, now_ns: int) -> None:
        taken = self._stacks.samples + self._stacks.samples_left_out + self.not_taken
        self.due_ns = now_ns + next(every for most, every in RATES if taken < most)
