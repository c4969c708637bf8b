"""Stacks of Python threads, counted: lines of code alone. A frame that is kept would keep the script's arrays alive."""

from __future__ import annotations

from types import CodeType, FrameType

from tftracer.capture import gc_pauses
from tftracer.capture.frame_names import FrameNames
from tftracer.slow.recorded import FoldedStack

#: Frames of a stack, from the innermost; distinct stacks of one stall or one profile. Both bound memory.
MAX_FRAMES = 64
MAX_STACKS = 200
#: A sample that was taken so long after it was due waited for the GIL.
LATE_NS = 1_000_000

#: The innermost line first.
Stack = tuple[tuple[CodeType, int], ...]


def stack_of(frame: FrameType | None) -> Stack:
    while frame is not None and frame.f_code.co_filename == gc_pauses.__file__:
        frame = frame.f_back  # a collection has just ended, and tells us so
    lines: list[tuple[CodeType, int]] = []
    while frame is not None and len(lines) < MAX_FRAMES:
        lines.append((frame.f_code, frame.f_lineno or 0))
        frame = frame.f_back
    return tuple(lines)


class _Count:
    """One distinct stack."""

    __slots__ = ("disk", "late", "samples", "seconds", "waiting")

    def __init__(self) -> None:
        self.samples = self.late = self.waiting = self.disk = 0
        self.seconds = 0.0


class StackCounts:
    """The stacks of one thread. Used by one thread at a time."""

    def __init__(self) -> None:
        self.samples = 0
        self.late = 0
        self.seconds = 0.0
        self.stacks_left_out = 0
        self.samples_left_out = 0
        self._counts: dict[Stack, _Count] = {}

    def add(self, stack: Stack, seconds: float, late: bool = False, state: str = "") -> None:
        """``seconds``: that the sample stands for; ``state``: Linux's letter for what the thread did, "" where not known."""
        count = self._counts.get(stack)
        if count is None:
            if len(self._counts) >= MAX_STACKS:
                self.stacks_left_out += 1
                self.samples_left_out += 1
                return
            count = self._counts[stack] = _Count()
        count.samples += 1
        count.seconds += seconds
        count.late += late
        count.waiting += state == "S"
        count.disk += state == "D"
        self.samples += 1
        self.late += late
        self.seconds += seconds

    def folded(self, names: FrameNames, thread: str, scale: float = 1.0) -> tuple[FoldedStack, ...]:
        """The most seconds first; each stack's seconds times ``scale``."""
        stacks = [
            FoldedStack(
                thread,
                tuple(names.frame(code, line) for code, line in reversed(stack)),
                count.samples,
                count.seconds * scale,
                count.late,
                count.waiting,
                count.disk,
            )
            for stack, count in self._counts.items()
        ]
        return tuple(sorted(stacks, key=lambda stack: -stack.seconds))
