"""The message about steps that should have been traced and have no trace. The writer's threads add to it."""

from __future__ import annotations

import threading
from collections import Counter

#: The message names at most this many ranges of steps of a run, and this many runs.
MAX_RANGES, MAX_RUNS = 5, 5


class MissingTraces:
    """Collects the steps without a trace, by run, and the reasons."""

    def __init__(self) -> None:
        self.changed = False  # whether steps were added since the last message
        self._steps: dict[str, list[tuple[int, int]]] = {}  # run title -> first and last step of each range
        self._counts: Counter[str] = Counter()
        self._reasons: dict[str, None] = {}  # a set in order of arrival
        self._lock = threading.Lock()

    def add(self, title: str, step: int, reason: str) -> None:
        """Add a step of a run, in order. ``reason``: the text after "because"."""
        with self._lock:
            self._reasons[reason] = None
            self._counts[title] += 1
            ranges = self._steps.setdefault(title, [])
            if ranges and ranges[-1][1] == step - 1:
                ranges[-1] = (ranges[-1][0], step)
            elif len(ranges) <= MAX_RANGES:
                ranges.append((step, step))
            self.changed = True

    def message(self) -> str:
        with self._lock:
            self.changed = False
            total = sum(self._counts.values())
            reasons = ", or ".join(self._reasons)
            runs = [self._of_run(title) for title in list(self._counts)[:MAX_RUNS]]
        more = "; and of other runs" if len(self._counts) > MAX_RUNS else ""
        missing = "1 trace is" if total == 1 else f"{total:,} traces are"
        return f"{missing} missing, because {reasons}: {'; '.join(runs)}{more}."

    def _of_run(self, title: str) -> str:
        ranges = self._steps[title]
        shown = [str(first) if first == last else f"{first}-{last}" for first, last in ranges[:MAX_RANGES]]
        more = " and later ones" if len(ranges) > MAX_RANGES else ""
        return f"{title!r}, {'step' if self._counts[title] == 1 else 'steps'} {', '.join(shown)}{more}"
