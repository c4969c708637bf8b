"""What a live session needs of whoever decodes its traces."""

from __future__ import annotations

from typing import Any, Protocol

from tftracer.storage.trace_payload import TraceKey
from tftracer.trace.model import Watched


class TraceAnalyzer(Protocol):
    """What finds out for a live session what its traces hold (engine/engine.py)."""

    def start_in_background(self) -> None:
        """A trace will come soon. Does not wait."""

    def contents(self, trace: TraceKey, watched: Watched) -> dict[str, Any]:
        """``nodes``, ``devices``, ``findings``, ``headline`` and ``state`` of its record."""

    def interrupt(self) -> None:
        """Give up what is being done."""

    def close(self) -> None: ...
