"""Steps of a live run that are counted and not in the file yet. Used by the writer's thread alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tftracer.session.steps.history import Doubles

#: Steps that wait to be written; a run that cannot be written for longer is written as a whole history later.
MAX_PENDING = 100_000


class Steps(NamedTuple):
    """Steps in a row."""

    first_step: int
    starts: Doubles
    durations: Doubles
    traced: list[int]  # positions in them


class UnwrittenSteps:
    def __init__(self) -> None:
        self.changed = False
        self.defined = False  # whether the run's definition is in the file
        self.needs_history = False  # too many steps wait: write the whole history instead
        self.written_records = 0
        self.written_bytes = 0  # of the records that the next whole history makes superfluous
        self._columns: list[tuple[Doubles, Doubles]] = []  # starts, durations: as they came
        self._traced: list[int] = []
        self._count = 0
        self._since_history = 0  # steps written one by one since the last whole history

    def __len__(self) -> int:
        return self._count

    def add(self, starts: Doubles, durations: Doubles, traced: list[int]) -> None:
        self.changed = True
        if self.needs_history:
            return
        self._traced.extend(self._count + position for position in traced)
        self._columns.append((starts, durations))
        self._count += len(starts)
        if self._count > MAX_PENDING:
            self._want_history()

    def take(self, last_step: int, most: int) -> Steps | None:
        """The steps to be written now; None: write the whole history, for more than ``most`` were written one by one."""
        self.changed = False
        if self.needs_history or self._since_history + self._count > most or not self._columns:
            self._want_history()
            return None
        starts, durations = (np.concatenate(columns) for columns in zip(*self._columns))
        taken = Steps(last_step - self._count + 1, starts, durations, self._traced)
        self._forget()
        return taken

    def written(self, size: int, steps: int) -> None:
        """``steps`` one by one, or (0) the whole history, take ``size`` bytes in the file."""
        self.needs_history = self.needs_history and steps > 0
        self._since_history = self._since_history + steps if steps else 0
        self.written_bytes = self.written_bytes + size if steps else size
        self.written_records = self.written_records + 1 if steps else 1

    def failed(self) -> None:
        """Nothing could be written: next time the whole history is."""
        self._want_history()
        self.changed = True

    def _want_history(self) -> None:
        self.needs_history = True
        self._forget()

    def _forget(self) -> None:
        self._columns, self._traced, self._count = [], [], 0
