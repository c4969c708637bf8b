"""The Python threads of this process by their numbers, looked up once a second. Used by the watch's thread."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable
from threading import get_ident

OURS = "tftracer-"


class WatchedThreads:
    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.native_ids: dict[int, int | None] = {}  # the kernel's numbers
        self.ours: frozenset[int] = frozenset()  # the tracer's own threads

    def refresh(self) -> list[int]:
        """Numbers that another thread has now."""
        threads = [thread for thread in threading.enumerate() if thread.ident is not None]
        reused = [
            thread.ident
            for thread in threads
            if thread.ident is not None and self.native_ids.get(thread.ident, thread.native_id) != thread.native_id
        ]
        self.names = {thread.ident: thread.name for thread in threads if thread.ident is not None}
        self.native_ids = {thread.ident: thread.native_id for thread in threads if thread.ident is not None}
        own = {ident for ident, name in self.names.items() if name.startswith(OURS)}
        self.ours = frozenset(own | {get_ident()})
        return reused

    def ended(self, idents: Iterable[int]) -> list[int]:
        """Those of ``idents`` that no thread has any more."""
        unknown = [ident for ident in idents if ident not in self.names]
        alive = set(sys._current_frames()) if unknown else set()  # threads that Python did not start are not enumerated
        return [ident for ident in unknown if ident not in alive]
