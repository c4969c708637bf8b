"""Ends a live session with its process, and leaves it to the parent in a fork; the session is not kept alive for it."""

from __future__ import annotations

import atexit
import os
import weakref
from collections.abc import Callable
from typing import Protocol


class Live(Protocol):
    def close(self) -> None: ...

    def after_fork(self) -> None: ...


def watch(session: Live) -> Callable[[], None]:
    """Close it at exit, tell it of forks in the child; returns what ends the watch at exit."""
    reference = weakref.ref(session)

    def close() -> None:
        alive = reference()
        if alive:
            alive.close()

    def forked() -> None:
        alive = reference()
        if alive:
            alive.after_fork()

    atexit.register(close)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forked)
    return lambda: atexit.unregister(close)
