"""Traces that wait for compression and disk: how many there may be, and what a step does that finds too many."""

from __future__ import annotations

from threading import Condition

from tftracer.session.recorded_steps import Capture

#: While so many traces wait, a step that is to be traced waits for room.
MAX_TRACES = 4
MAX_BYTES = 512 << 20
#: How long it waits at most. Where no room came within that, later steps do not wait until there is some: a disk that hangs must
#: not hold up training for longer. Such steps run untraced, and the page says which.
WAIT_S = 5.0


class TraceBacklog:
    """Methods may be called from any thread."""

    def __init__(self) -> None:
        self.wait_s = WAIT_S
        self.traces = 0
        self._bytes = 0
        self._timed_out = False  # the last wait: nobody waits until there is room again
        self._room = Condition()

    def add(self, capture: Capture) -> Capture:
        """It waits until ``remove``."""
        with self._room:
            self.traces += 1
            self._bytes += capture.size
        return capture

    def remove(self, capture: Capture) -> None:
        with self._room:
            self.traces -= 1
            self._bytes -= capture.size
            self._timed_out = False
            self._room.notify_all()

    def wait_for_room(self) -> bool:
        """Whether another trace may be taken; waits for at most ``wait_s``. Called on the training threads."""
        if not self.is_full():
            return True
        with self._room:
            if self._timed_out:
                return False
            self._timed_out = not self._room.wait_for(lambda: not self.is_full(), self.wait_s)
            return not self._timed_out

    def is_full(self) -> bool:
        return self.traces >= MAX_TRACES or self._bytes >= MAX_BYTES
