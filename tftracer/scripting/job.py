"""Several processes' sessions as one job: their clocks are estimated when times are asked for, once for all of them."""

from __future__ import annotations

import itertools
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tftracer.errors import TracerError
from tftracer.job.analyses.common_clock import JobClocks, job_clocks
from tftracer.job.analyses.process_traces import ProcessTrace
from tftracer.job.saved.processes import SavedProcess
from tftracer.session.files.saved import SavedSession
from tftracer.session.process.launcher import process_title
from tftracer.trace.decode import formats


class Job:
    """``steps``: of each step that several processes traced, (position of the process, number of its trace)."""

    def __init__(self, processes: Sequence[SavedProcess], steps: Sequence[Sequence[tuple[int, int]]]) -> None:
        self.processes = list(processes)
        self._steps = steps
        self._lock = threading.Lock()
        self._clocks: JobClocks | None = None

    def clocks(self) -> JobClocks:
        """Decodes every trace of every step of several processes, at the first call."""
        with self._lock:
            if self._clocks is None:
                shared = {process.title: process.clock for process in self.processes}
                self._clocks = job_clocks(map(self._sources, self._steps), shared)
            return self._clocks

    def _sources(self, step: Sequence[tuple[int, int]]) -> list[ProcessTrace]:
        return list(self._readable(step))

    def _readable(self, step: Sequence[tuple[int, int]]) -> Iterator[ProcessTrace]:
        for position, trace_id in step:
            process = self.processes[position]
            try:
                raw, context = process.session.trace_bytes(trace_id), process.session.trace_context(trace_id)
                yield ProcessTrace(str(position), process.title, formats.decode(raw, context.communication_ops))
            except TracerError:  # damaged: its record says so
                continue


@dataclass(frozen=True)
class Place:
    """A session's place in its job. ``rank``: the number that its files have, the process's own where it is known."""

    job: Job
    title: str
    rank: int


def places(job: Job) -> list[Place]:
    """Of all processes. Those without a rank, and with one that is taken, get the numbers after the last rank."""
    taken: set[int] = set()
    numbers: list[int | None] = []
    for process in job.processes:
        free = process.rank is not None and process.rank not in taken
        numbers.append(process.rank if free else None)
        if free:
            taken.add(process.rank or 0)
    following = itertools.count(max(taken, default=-1) + 1)
    ranks = [next(following) if number is None else number for number in numbers]
    return [Place(job, process.title, rank) for process, rank in zip(job.processes, ranks)]


def job_of(sessions: Sequence[SavedSession]) -> Job:
    """The job whose processes recorded one session each.

    Traces of one run's step of the same number are of one step; so are files that hold one trace each and do not tell its number.
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
