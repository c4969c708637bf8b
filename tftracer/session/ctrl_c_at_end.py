"""Runs the tracer's work at the end of the script, and handles Ctrl-C during it."""

from __future__ import annotations

import atexit
import logging
import signal
import threading
import weakref
from collections.abc import Callable
from types import FrameType

log = logging.getLogger("tftracer")

WAITS = "tftracer: the end of the session is being written. Ctrl-C again does not wait for it."


class _Ending:
    """Runs work at the end of the script.

    The first Ctrl-C only logs what the user waits for, because they may have pressed it twice to end the script. The next one
    stops the work, and no more work is run.
    """

    def __init__(self) -> None:
        self._presses = 0  # how often Ctrl-C was pressed
        self._is_logging = False

    def do(self, work: Callable[[], object]) -> None:
        if self._presses > 1:
            return
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # the script's own handler stays
            work()
            return
        signal.signal(signal.SIGINT, self._pressed)
        try:
            work()
        except KeyboardInterrupt:  # a traceback would not help the user
            pass
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _pressed(self, number: int, frame: FrameType | None) -> None:
        self._presses += 1
        if self._is_logging:  # an exception here could leave a lock of logging taken; the first press raises it
            return
        if self._presses == 1:
            self._is_logging = True
            try:
                log.warning(WAITS)
            finally:
                self._is_logging = False
        if self._presses > 1:
            raise KeyboardInterrupt


#: Runs a function at the end of the script.
at_end = _Ending().do


def call_at_exit(method: Callable[[], object]) -> Callable[[], None]:
    """Call a method at the end of the script, if its object still exists then. Return a function that cancels this."""
    reference = weakref.WeakMethod(method)

    def call() -> None:
        alive = reference()
        if alive is not None:
            at_end(alive)

    atexit.register(call)
    return lambda: atexit.unregister(call)
