"""Every process's clock against the first one's, from all traced steps of a job; and traces moved to the first one's clock.

The page estimates the clocks for the step that it shows (answers.py). Tables hold many steps: they are estimated once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tftracer.export.tables.of_trace import Times
from tftracer.job.analyses.clocks import Clock, Observation, estimate
from tftracer.job.analyses.collectives import find_collectives, observations
from tftracer.job.analyses.process_traces import Owners, ProcessTrace, align, origin_of
from tftracer.trace.model import Trace


@dataclass(frozen=True)
class JobClocks:
    """By the titles of processes."""

    clocks: Mapping[str, Clock]

    def of(self, title: str) -> Clock | None:
        """None: nothing ties it to the first process's clock."""
        clock = self.clocks.get(title)
        return clock if clock is not None and np.isfinite(clock.sigma_ns) else None

    def aligner(self, title: str) -> Callable[[Trace], Times]:
        """What moves the traces that this process recorded to the first process's clock."""
        return lambda trace: self._aligned(ProcessTrace("", title, trace))

    def _aligned(self, source: ProcessTrace) -> Times:
        owners = Owners.of([source])
        still = Clock(source.trace.origin_ns)
        (aligned,) = align([source], owners, [self.clocks.get(title, still) for title in owners.titles])
        origin = origin_of([aligned])
        return Times(origin, *aligned.since(origin))


def job_clocks(steps: Iterable[Sequence[ProcessTrace]], shared: Mapping[str, str]) -> JobClocks:
    """``steps``: of each step its traces, read one step at a time; ``shared``: title of a process -> its machine's clock."""
    titles: dict[str, int] = {}
    seen: list[Observation] = []
    for sources in steps:
        owners = Owners.of(sources)
        number = [titles.setdefault(title, len(titles)) for title in owners.titles]
        for o in observations(sources, owners, find_collectives(sources)):
            seen.append(Observation(number[o.a], number[o.b], o.at_ns, o.offset_ns, o.sigma_ns, o.matches))
    clocks = estimate(seen, len(titles), shared=[shared.get(title, "") for title in titles]) if titles else []
    return JobClocks(dict(zip(titles, clocks)))
