"""Limits the traces that wait to be compressed and written.

If there is no room, a step waits for a short time, then runs untraced.
"""

from __future__ import annotations

from threading import Condition

from tftracer.capture.recorded_steps import Capture

#: Up to four waiting traces may be large; more may wait only if they are small. While fewer than FEW_TRACES wait, there is room
#: if together they take less than MAX_BYTES_OF_FEW. While FEW_TRACES or more wait, there is room if together they take less than
#: MAX_BYTES_OF_MANY. So small traces of consecutive steps are all kept, even if the thread that stores them gets no CPU for a
#: while.
FEW_TRACES = 4
MAX_BYTES_OF_MANY = 64 << 20
MAX_BYTES_OF_FEW = 512 << 20
MAX_WAITING = 1000  # maximum number of waiting traces, however small they are
#: A step that is to be traced waits at most this long for room. If it waited without success, later steps do not wait at all
#: until a trace has left the backlog. Steps without room run untraced, and the page names them.
WAIT_S = 0.05


class TraceBacklog:
    """The traces that wait to be stored. Methods may be called from any thread."""

    def __init__(self) -> None:
        self.wait_s = WAIT_S
        self._traces: set[Capture] = set()
        self._timed_out = False  # whether the last wait was without success: until a trace is removed, steps do not wait
        self._room = Condition()

    def add(self, capture: Capture) -> Capture:
        """Add a trace, which counts until it is removed."""
        with self._room:
            self._traces.add(capture)
        return capture

    def remove(self, capture: Capture) -> None:
        """Remove a trace, because it was stored or will not be stored."""
        with self._room:
            self._traces.discard(capture)
            self._timed_out = False
            self._room.notify_all()

    def wait_for_room(self) -> bool:
        """Return whether there is room for another trace; wait at most ``wait_s`` for room. Called on the training threads."""
        with self._room:
            if not self.is_full():
                return True
            if self._timed_out:
                return False
            self._timed_out = not self._room.wait_for(lambda: not self.is_full(), self.wait_s)
            return not self._timed_out

    @property
    def is_empty(self) -> bool:
        return not self._traces

    def is_full(self) -> bool:
        with self._room:
            waiting_bytes = sum(capture.size for capture in self._traces)
            if len(self._traces) < FEW_TRACES:
                return waiting_bytes >= MAX_BYTES_OF_FEW
            return waiting_bytes >= MAX_BYTES_OF_MANY or len(self._traces) >= MAX_WAITING
