"""Measures from looks at an iterator how long the training waits in ``next`` for its elements, between steps and in steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tftracer.input_pipelines.dataset_code import kind_of
from tftracer.input_pipelines.saved_pipelines import Reading

#: TensorFlow's interleaving node classes. Their inputs, except the first, are created and removed while they run.
INTERLEAVING = (1, 2)
#: TensorFlow keeps only the last 100 gaps: if more elements came, and in a longer time than this, too many gaps are unknown.
LONG_S = 2.5
#: TensorFlow does not record a time between two calls of ``next`` that is longer than this.
LONGEST_GAP_S = 10.0
#: The work that TensorFlow does not time: to pass one element on, all stages without a function together take at most this.
PASSED_ON_S = 50e-6


def counted_wait(looks: Sequence[Reading]) -> float | None:
    """Return the share of time in ``next`` that the ledger counted; None if it counted no wait."""
    first, last = looks[0], looks[-1]
    return min(1.0, max(0.0, last.waited_s - first.waited_s) / (last.at - first.at)) if last.waits > first.waits else None


def waited_s(earlier: Reading, later: Reading) -> float | None:
    """Return the time in ``next`` between two looks, without the times between its calls. None: not known.

    The result may be below 0: a time between two calls that contains a look counts only for the later look. The start of the wait
    for the first element is not known, because the training may build its function first: this wait counts for at most the time
    for which the stages worked.
    """
    passed, seconds = later.model.elements - earlier.model.elements, later.at - earlier.at
    gaps = later.model.gaps_s[-passed:] if passed > 0 else ()
    is_known = gaps and 0 < seconds < LONGEST_GAP_S and (passed <= len(gaps) or seconds < LONG_S)
    if not is_known:
        return None
    waited = seconds - passed * sum(gaps) / len(gaps)
    if not earlier.model.elements:
        return min(waited, _worked_ns(later) * 1e-9)
    if passed > len(gaps) and _is_all_timed(later):  # a slow step before the known gaps is no wait
        waited = min(waited, max(0, _worked_ns(later) - _worked_ns(earlier)) * 1e-9 + passed * PASSED_ON_S)
    return waited


def _is_all_timed(look: Reading) -> bool:
    """Return whether TensorFlow times all work of the stages: no functions are called, and no stages come and go."""
    nodes = look.model.nodes.values()
    return all(node.node_class not in INTERLEAVING and kind_of(node.name) in ("", "shuffle") for node in nodes)


def _worked_ns(look: Reading) -> int:
    return sum(node.processing_ns for node in look.model.nodes.values())


class Ledger(Protocol):
    """Knows the waits for elements between steps, and receives those within steps."""

    def input_waits(self) -> tuple[float, int]:
        """Return the seconds and the number of the waits that have ended."""

    def evaluates(self) -> bool: ...

    def add_step_wait(self, title: str, seconds: float) -> None:
        """Add a wait within a step. ``title``: the dataset's title."""


class StepWaits:
    """The waits within steps, as in Keras's ``fit``, for one iterator.

    A wait is counted one look later, unless a wait between steps has ended meanwhile.
    """

    def __init__(self, title: str, ledger: Ledger) -> None:
        self._title = title
        self._ledger = ledger
        self._since: Reading | None = None  # the newest look that found more elements than the look before
        self._pending = 0.0  # seconds in ``next`` before that look
        self._waits = 0  # number of waits between steps that had ended when these seconds began

    def look(self, seen: Reading) -> None:
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
