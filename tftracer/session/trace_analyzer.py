"""What a live session needs of whoever decodes its traces."""

from __future__ import annotations

from typing import Any, Protocol

from tftracer.storage.trace_payload import Payload, TraceKey


class TraceAnalyzer(Protocol):
    """What finds out for a live session what its traces hold (engine/engine.py)."""

    @property
    def is_free(self) -> bool:
        """Whether a question would not have to wait for others."""

    def start_in_background(self) -> None:
        """A trace will come soon. Does not wait."""

    def contents(self, trace: TraceKey, payload: Payload | None = None) -> dict[str, Any]:
        """``nodes``, ``devices``, ``findings``, ``headline`` and ``state`` of its record. ``payload``: the trace, if at hand."""

    def interrupt(self) -> None:
        """Give up what is being done."""

    def close(self) -> None: ...
