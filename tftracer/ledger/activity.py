"""The activities of a process that the training's queue passes to the ledger."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import get_ident
from time import perf_counter_ns
from typing import Union

from tftracer.run_handle import RunHandle

#: Ranks of activities. If several happen at once, the time counts for the one with the lowest rank. ``OTHER_THREAD`` is added to
#: the ranks on other threads, so they come after all activities of the main thread, on which a training usually runs. LOOP: the
#: main thread is between two activities.
SUSPENDED, TRACER, BUILDING, CHECKPOINTS, EVALUATION, INPUT, STEPS, LOOP = range(8)
OTHER_THREAD = 8
#: Ranks of the activities that a training consists of: it lasts from the beginning of the first one to the end of the last one.
STEPPING = (EVALUATION, STEPS)

#: Usual names of functions that evaluate or predict: "test_step", "evaluate: convnet", "validation_loop".
_EVALUATES = re.compile(
    r"(^|_|\b)(eval|evaluate|evaluation|valid|validate|validation|val|test|predict|prediction|infer|inference)(_|\b)"
)
STOPPED = "the process was stopped for at least this time"
NEXT_ELEMENT = "the next element of a dataset"
MAX_WAITING = 1 << 17  # maximum number of activities that wait for the writer's thread
MAX_DATASETS = 50


#: The run of a step, or the name of another activity.
RunOrName = Union[RunHandle, str]
#: Rank, run or name, start and end (perf_counter nanoseconds), thread.
Activity = tuple[int, RunOrName, int, int, int]


def kind_of_step(run: RunHandle) -> int:
    """Return EVALUATION for a compiled function whose name is that of an evaluation; else STEPS."""
    return EVALUATION if run.definition and _evaluates(run.title.partition(" (")[0]) else STEPS


@lru_cache(1000)
def _evaluates(name: str) -> bool:
    """Return whether a name is that of an evaluation. Cached, because it is called for each step of a function."""
    return _EVALUATES.search(name) is not None


class Activities:
    """Passes activities from the training's queue to the writer's thread. Methods may be called from any thread."""

    def __init__(self) -> None:
        self.ended: deque[Activity] = deque(maxlen=MAX_WAITING)
        #: Current activities: (thread, rank) -> (name, start). Those of steps are in ``StepQueue.under_way``.
        self.under_way: dict[tuple[int, int], tuple[str, int]] = {}
        #: Thread -> start of its wait for the next element of a dataset; 0: it does not wait.
        self.waiting: dict[int, int] = {}
        #: Dataset -> seconds for which steps waited for its elements, estimated from its pipeline.
        self.step_waits: dict[str, float] = {}
        #: The waits that have ended: their nanoseconds, and their number.
        self.waited_ns = self.waits = 0

    def add_step_wait(self, title: str, seconds: float) -> None:
        if title in self.step_waits or (seconds > 0 and len(self.step_waits) < MAX_DATASETS):
            self.step_waits[title] = self.step_waits.get(title, 0.0) + seconds

    @contextmanager
    def tracing(self, name: str) -> Iterator[None]:
        """Count the time of a ``with`` block as the tracer's."""
        thread, start = get_ident(), perf_counter_ns()
        self.under_way[thread, TRACER] = name, start
        try:
            yield
        finally:
            self.under_way.pop((thread, TRACER), None)
            self.ended.append((TRACER, name, start, perf_counter_ns(), thread))

    def evaluates(self) -> bool:
        return any(rank == EVALUATION for _, rank in list(self.under_way))

    def input_waits(self) -> tuple[float, int]:
        """Return the seconds of the waits for elements that have ended, and their number."""
        return self.waited_ns * 1e-9, self.waits
