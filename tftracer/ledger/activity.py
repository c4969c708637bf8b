"""What a process is seen to do, as the training's queue hands it to the ledger."""

from __future__ import annotations

import re
from collections import deque
from functools import lru_cache
from typing import Protocol, Union

from tftracer.slow.recorded import WatchedRun

#: What a moment counts as if several things happen: the first of these. What other threads do comes after all that the main one
#: does, which is where a training waits (``OTHER_THREAD`` is added then). LOOP: the main thread was between two of them.
SUSPENDED, TRACER, BUILDING, CHECKPOINTS, EVALUATION, INPUT, STEPS, LOOP = range(8)
OTHER_THREAD = 8
#: What a training begins and ends with.
STEPPING = (EVALUATION, STEPS)

#: Names of functions that evaluate or predict, as people call them: "test_step", "evaluate: convnet", "validation_loop".
_EVALUATES = re.compile(
    r"(^|_|\b)(eval|evaluate|evaluation|valid|validate|validation|val|test|predict|prediction|infer|inference)(_|\b)"
)
STOPPED = "the process was stopped"
NEXT_ELEMENT = "the next element of a dataset"
MAX_WAITING = 1 << 17
MAX_DATASETS = 50


class Run(WatchedRun, Protocol):
    """A run, as far as the ledger is concerned."""

    definition: str  # of a compiled function: where it is defined; "" of a session's


#: Rank, the run of a step or the name of what is done, start and end (perf_counter nanoseconds), thread.
Activity = tuple[int, Union[Run, str], int, int, int]


def rank_of_step(run: Run) -> int:
    """A compiled function evaluates if its name says so; what a session's run is for, its name does not tell."""
    return EVALUATION if run.definition and _evaluates(run.title.partition(" (")[0]) else STEPS


@lru_cache(1000)
def _evaluates(name: str) -> bool:
    """Asked at every step of a compiled function."""
    return _EVALUATES.search(name) is not None


class Activities:
    """From the training's queue to the writer's thread. Methods may be called from any thread."""

    def __init__(self) -> None:
        self.ended: deque[Activity] = deque(maxlen=MAX_WAITING)
        #: Under way: (thread, rank) -> (name, start). Those of steps are in ``StepQueue.under_way``.
        self.under_way: dict[tuple[int, int], tuple[str, int]] = {}
        #: Thread -> since when it waits for the next element of a dataset; 0: it does not.
        self.waiting: dict[int, int] = {}
        #: Dataset -> seconds that steps waited for its elements, as looks at its pipeline tell.
        self.step_waits: dict[str, float] = {}
        #: Of the waits that have ended: their nanoseconds, and how many.
        self.waited_ns = self.waits = 0

    def add_step_wait(self, title: str, seconds: float) -> None:
        if title in self.step_waits or (seconds > 0 and len(self.step_waits) < MAX_DATASETS):
            self.step_waits[title] = self.step_waits.get(title, 0.0) + seconds

    def evaluates(self) -> bool:
        return any(rank == EVALUATION for _, rank in list(self.under_way))

    def input_waits(self) -> tuple[float, int]:
        """Seconds of the waits for elements that have ended, and how many there were."""
        return self.waited_ns * 1e-9, self.waits
