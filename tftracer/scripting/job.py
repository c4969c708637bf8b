"""Combines several processes' sessions into one job. The clocks are estimated once, when times are first needed."""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tftracer.errors import TracerError
from tftracer.export.tables.of_trace import Times
from tftracer.job.analyses.clocks import Clock, Observation, estimate
from tftracer.job.analyses.collectives import find_collectives, observations
from tftracer.job.analyses.process_traces import Owners, ProcessTrace, align, origin_of
from tftracer.job.saved.processes import SavedProcess
from tftracer.session.files.saved import SavedSession
from tftracer.session.process.launcher import process_title
from tftracer.trace.decode import formats
from tftracer.trace.model import Trace


@dataclass(frozen=True)
class JobClocks:
    """The clocks of a job's processes. ``clocks``: title of a process -> its clock."""

    clocks: Mapping[str, Clock]

    def of(self, title: str) -> Clock | None:
        """Return a process's clock; None if its offset from the first process's clock is not known."""
        clock = self.clocks.get(title)
        return clock if clock is not None and np.isfinite(clock.sigma_ns) else None

    def aligned(self, title: str, trace: Trace) -> Times:
        """Return the times of a trace of this process on the first process's clock."""
        source = ProcessTrace("", title, trace)
        owners = Owners.of([source])
        unknown_clock = Clock(trace.origin_ns)
        (aligned,) = align([source], owners, [self.clocks.get(owner, unknown_clock) for owner in owners.titles])
        origin = origin_of([aligned])
        return Times(origin, *aligned.since(origin))


def job_clocks(steps: Iterable[Sequence[ProcessTrace]], shared: Mapping[str, str]) -> JobClocks:
    """Estimate the clocks.

    ``steps``: the traces of each step, read one step at a time. ``shared``: title of a process -> its machine's clock.
    """
    titles: dict[str, int] = {}
    seen: list[Observation] = []
    for sources in steps:
        owners = Owners.of(sources)
        numbers = [titles.setdefault(title, len(titles)) for title in owners.titles]
        of_step = observations(sources, owners, find_collectives(sources))
        seen += [replace(each, a=numbers[each.a], b=numbers[each.b]) for each in of_step]
    clocks = estimate(seen, len(titles), shared=[shared.get(title, "") for title in titles]) if titles else []
    return JobClocks(dict(zip(titles, clocks)))


@dataclass(eq=False)
class Job:
    """A job. ``steps``: the traces of each step that several processes traced, as (position of the process, id of the trace)."""

    processes: Sequence[SavedProcess]
    steps: Sequence[Sequence[tuple[int, int]]]

    @cached_property
    def clocks(self) -> JobClocks:
        """The clocks. The first use decodes every trace of every step that several processes traced."""
        return job_clocks(map(self._sources, self.steps), {process.title: process.clock for process in self.processes})

    def _sources(self, step: Sequence[tuple[int, int]]) -> list[ProcessTrace]:
        sources = []
        for position, trace_id in step:
            process = self.processes[position]
            with contextlib.suppress(TracerError):  # the trace is damaged; its record says so
                raw, context = process.session.trace_bytes(trace_id), process.session.trace_context(trace_id)
                sources.append(ProcessTrace(str(position), process.title, formats.decode(raw, context.communication_ops)))
        return sources


@dataclass(frozen=True)
class Place:
    """A session's place in its job. ``rank``: its number in the names of files: the process's own rank if known."""

    job: Job
    title: str
    rank: int


def places(job: Job) -> list[Place]:
    """Return the places of all processes.

    Processes without a rank, or with the rank of an earlier process, get numbers after the last rank.
    """
    given = [process.rank for process in job.processes]
    unused = itertools.count(max((rank for rank in given if rank is not None), default=-1) + 1)
    ranks = [next(unused) if rank is None or rank in given[:position] else rank for position, rank in enumerate(given)]
    return [Place(job, process.title, rank) for process, rank in zip(job.processes, ranks)]


def job_of(sessions: Sequence[SavedSession]) -> Job:
    """Combine sessions, one per process, into a job.

    Traces with the same run title and step number belong to one step. A trace without a step number counts only if its file has
    no other trace.
    """
    titles = [_title(session, number) for number, session in enumerate(sessions)]
    repeated = {title for title in titles if titles.count(title) > 1}
    processes = [
        SavedProcess(f"{title} (file {number + 1})" if title in repeated else title, session.session()["rank"], "", session)
        for number, (title, session) in enumerate(zip(titles, sessions))
    ]
    steps: dict[tuple[str, int | None], list[tuple[int, int]]] = defaultdict(list)
    for position, session in enumerate(sessions):
        titled = [(run["title"], record) for run in session.runs() for record in run["traces"]]
        for title, record in titled:
            if record["step"] is not None or len(titled) == 1:
                steps[title, record["step"]].append((position, record["id"]))
    return Job(processes, [step for step in steps.values() if len(step) > 1])


def _title(session: SavedSession, number: int) -> str:
    facts = session.session()
    return process_title(facts["place"], facts["pid"]) if facts["pid"] else f"file {number + 1}"
