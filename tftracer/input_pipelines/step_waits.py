"""How long steps wait for the elements of a dataset, as Keras's ``fit`` does, from looks at its iterator. Pure."""

from __future__ import annotations

from typing import Protocol

from tftracer.input_pipelines.limit import waited_s
from tftracer.input_pipelines.sheet import Look


class Ledger(Protocol):
    """It knows the waits for elements between steps, and is told those within them."""

    def input_waits(self) -> tuple[float, int]:
        """Seconds, and how many have ended."""

    def evaluates(self) -> bool: ...

    def add_step_wait(self, title: str, seconds: float) -> None:
        """``title``: of the dataset."""


class StepWaits:
    """Of one iterator. A wait is counted a look later, when the ledger knows whether there were waits between steps meanwhile."""

    def __init__(self, title: str, ledger: Ledger) -> None:
        self._title = title
        self._ledger = ledger
        self._since: Look | None = None  # the newest look before which elements passed
        self._pending = 0.0  # seconds in ``next`` before that
        self._waits = 0  # between steps, that had ended when those seconds began

    def look(self, seen: Look) -> None:
        self._count(seen.waits)
        since = self._since
        if since is not None and seen.model.elements == since.model.elements:
            return
        if since is not None and not self._ledger.evaluates():  # an evaluation's waits are its own
            self._pending, self._waits = waited_s(since, seen) or 0.0, since.waits
        self._since = seen

    def end(self) -> None:
        self._count(self._ledger.input_waits()[1])

    def _count(self, waits: int) -> None:
        if waits == self._waits:
            self._ledger.add_step_wait(self._title, self._pending)
        self._pending = 0.0
