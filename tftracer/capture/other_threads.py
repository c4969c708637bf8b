"""What other Python threads did meanwhile: TensorFlow runs py_function and tf.data's Python functions on its own threads."""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import FrameType

from tftracer.capture.frame_names import FrameNames
from tftracer.capture.stack_sampler import StackCounts, stack_of
from tftracer.slow.recorded import FoldedStack

#: Threads that are looked at.
MAX_THREADS = 32


class OtherThreads:
    """Used by the watch's thread."""

    def __init__(self) -> None:
        self._stacks: dict[int, StackCounts] = {}

    def sample(self, frames: Mapping[int, FrameType], without: Set[int], seconds: float) -> None:
        """``frames``: as of ``sys._current_frames``; ``without``: threads that are of no interest."""
        for thread, frame in frames.items():
            if thread in without:
                continue
            stacks = self._stacks.get(thread)
            if stacks is None:
                if len(self._stacks) >= MAX_THREADS:
                    continue
                stacks = self._stacks[thread] = StackCounts()
            stacks.add(stack_of(frame), seconds)

    def folded(self, names: FrameNames, thread_names: Mapping[int, str]) -> tuple[FoldedStack, ...]:
        """Stacks with a line of the user's, the most seconds first."""
        stacks = [
            stack
            for thread, counts in self._stacks.items()
            for stack in counts.folded(names, thread_names.get(thread) or f"thread {thread}")
            if any(not frame.is_library for frame in stack.frames)
        ]
        return tuple(sorted(stacks, key=lambda stack: -stack.seconds))
