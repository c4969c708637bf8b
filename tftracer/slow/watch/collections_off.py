"""Switches garbage collections off for a moment, without a conflict with the script's own settings.

To do so, it sets a threshold that no program reaches. It does not call ``gc.disable`` and ``gc.enable``, because these might undo
a call by another thread. If the threshold has another value later, the script has set its own, and it stays.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
from collections.abc import Iterator

#: A collection begins after this number of new objects, which means never. No script sets exactly this number.
NEVER = 2_000_000_011


class _Thresholds:
    """Counts the threads that keep collections off. When the last one releases them, the script's thresholds are set again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = 0  # number of threads that keep collections off
        self._script_thresholds = gc.get_threshold()

    def hold(self) -> None:
        with self._lock:
            self._held += 1
            now = gc.get_threshold()
            if now[0] != NEVER:
                self._script_thresholds = now
            gc.set_threshold(NEVER, *now[1:])

    def release(self) -> None:
        with self._lock:
            self._held = max(0, self._held - 1)
            if not self._held and gc.get_threshold()[0] == NEVER:
                gc.set_threshold(*self._script_thresholds)

    def after_fork(self) -> None:
        """Reset in a forked child: it has none of the threads that kept collections off."""
        self._lock = threading.Lock()
        self._held = 0
        if gc.get_threshold()[0] == NEVER:
            gc.set_threshold(*self._script_thresholds)


_THRESHOLDS = _Thresholds()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_THRESHOLDS.after_fork)


@contextlib.contextmanager
def collections_off() -> Iterator[None]:
    """Keep collections from starting automatically inside the block."""
    _THRESHOLDS.hold()
    try:
        yield
    finally:
        _THRESHOLDS.release()
