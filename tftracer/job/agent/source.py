"""What an agent needs of its process's live session, beside what every session has."""

from __future__ import annotations

from typing import Protocol

from tftracer.session.source import SessionSource


class JobSource(SessionSource, Protocol):
    """``recorder.Recorder`` is one. Every method may be called from any thread."""

    def steps_begun(self) -> dict[str, int]:
        """Title of each run -> how many of its steps have begun."""

    def request_trace_at(self, run_title: str, step: int) -> bool:
        """Trace the run's step of that number; False if it has begun already."""

    def take_back_traces_at(self) -> None:
        """Forget all requests of ``request_trace_at``."""

    def add_problem(self, code: str, message: str) -> None: ...

    def solved(self, code: str) -> None: ...
