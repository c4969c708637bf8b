"""Measures, from looks at a dataset's iterator, how long steps wait for its elements, as they do in Keras's ``fit``."""

from __future__ import annotations

from typing import Protocol

from tftracer.input_pipelines.saved_pipelines import Reading
from tftracer.input_pipelines.waits import waited_s


class Ledger(Protocol):
    """Knows the waits for elements between steps, and receives those within steps."""

    def input_waits(self) -> tuple[float, int]:
        """Return the seconds and the number of the waits that have ended."""

    def evaluates(self) -> bool: ...

    def add_step_wait(self, title: str, seconds: float) -> None:
        """Add a wait within a step. ``title``: the dataset's title."""


class StepWaits:
    """The steps' waits for one iterator. A wait is counted one look later, unless a wait between steps has ended meanwhile."""

    def __init__(self, title: str, ledger: Ledger) -> None:
        self._title = title
        self._ledger = ledger
        self._since: Reading | None = None  # the newest look that found more elements than the look before
        self._pending = 0.0  # seconds in ``next`` before that look
        self._waits = 0  # number of waits between steps that had ended when these seconds began

    def look(self, seen: Reading) -> None:
        """Add a look. If it found new elements, the wait for them becomes pending."""
        self._count(seen.waits)
        since = self._since
        if since is not None and seen.model.elements == since.model.elements:
            return
        if since is not None and not self._ledger.evaluates():  # an evaluation counts its waits itself
            self._pending, self._waits = waited_s(since, seen) or 0.0, since.waits
        self._since = seen

    def end(self) -> None:
        self._count(self._ledger.input_waits()[1])

    def _count(self, waits: int) -> None:
        if waits == self._waits:
            self._ledger.add_step_wait(self._title, self._pending)
        self._pending = 0.0
