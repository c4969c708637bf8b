"""Tells listeners about the changes of a session."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from tftracer.contract.live import LiveMessage

log = logging.getLogger("tftracer")

#: Called with each change, in the thread that made it (never a training thread). It must only pass the change on.
Listener = Callable[[LiveMessage], None]


class Publisher:
    """Passes messages about changes to all listeners. Any thread may call."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self._lock = threading.Lock()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with each change from now on. Return a function that ends this."""
        with self._lock:
            self._listeners += (listener,)

        def end() -> None:
            with self._lock:
                self._listeners = tuple(other for other in self._listeners if other is not listener)

        return end

    def publish(self, message: LiveMessage) -> None:
        for listener in self._listeners:
            try:
                listener(message)
            except Exception:
                log.exception("A listener of the session failed")
