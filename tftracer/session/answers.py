"""Answers requests about a session, live or reopened, from its model and under its lock.

Every method may be called from any thread. The methods raise ``UnknownError`` for a run or trace that does not exist,
``StorageError`` if a file cannot be read or written, and ``FormatError`` if its content is invalid.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tftracer.contract import stalls as contract
from tftracer.contract.input_pipelines import InputPipelines
from tftracer.contract.ledger import Ledger
from tftracer.contract.memory_growth import ProcessMemory
from tftracer.contract.session import Bookmark, Loaded, Run, Session, StepTimes, TraceRecord
from tftracer.session.files.records import Snapshot
from tftracer.session.model import SessionModel
from tftracer.session.publisher import Listener, Publisher
from tftracer.session.steps import columns as step_columns
from tftracer.session.steps.history import History
from tftracer.session.steps.usual_time_changes import step_changes
from tftracer.slow.answer import answers
from tftracer.slow.answer.groups import groups
from tftracer.slow.answer.messages import SlowMark
from tftracer.slow.record.read_slow_steps import read_stacks
from tftracer.storage import untrusted
from tftracer.trace.model import TraceContext

MAX_NOTE = 10_000


class SessionAnswers:
    """Reads a session's model, and changes the records of its traces."""

    def __init__(self, model: SessionModel, lock: threading.RLock | None = None, publisher: Publisher | None = None) -> None:
        self.model = model
        self.lock = lock or threading.RLock()
        self.publisher = publisher or Publisher()

    def session(self) -> Session:
        with self.lock:
            return self.model.facts.copy()

    def runs(self) -> list[Run]:
        with self.lock:
            return list(map(self.model.run_message, self.model.runs.values()))

    def run(self, run_id: int) -> Run:
        with self.lock:
            return self.model.run_message(self.model.run(run_id))

    def history(self, run_id: int) -> History:
        with self.lock:
            read = self.model.run(run_id).history_reader()
        return read()

    def step_times(self, run_id: int) -> StepTimes:
        return step_columns.step_times(run_id, self.history(run_id))

    def ledger(self) -> Ledger:
        with self.lock:
            return self.model.ledger_message()

    def input_pipelines(self) -> InputPipelines:
        with self.lock:
            return self.model.input_pipelines_message()

    def memory_growth(self) -> ProcessMemory:
        with self.lock:
            return self.model.memory_message()

    def run_stalls(self, run_id: int) -> contract.RunStalls:
        with self.lock:
            run = self.model.run(run_id)
            read, statistics = run.history_reader(), run.numbers()
            log, traces = self.model.slow, self.model.traces_by_step(run)
            stalls, count, periods = answers.stalls_of(log, run_id, traces), log.count(run_id), log.periods_of(run_id)
            stall_groups, marks = groups(log, run_id, statistics["steps"], traces), log.all_marks()
        history = read()
        changes, drift = step_changes(history)
        return {
            "run_id": run_id,
            "stalls": stalls,
            "count": count,
            "groups": stall_groups,
            "periods": periods,
            "marks": placed_marks(marks, history),
            "changes": changes,
            "drift": drift,
            "median_s": statistics["p50_s"],
            "p99_s": statistics["p99_s"],
            "max_s": statistics["max_s"],
        }

    def all_stalls(self) -> contract.StallList:
        with self.lock:
            traces = {run_id: self.model.traces_by_step(self.model.run(run_id)) for run_id in self.model.runs}
            return answers.all_stalls(self.model.slow, traces, lambda run_id: self.model.run(run_id).numbers()["steps"])

    def stall(self, stall_id: int) -> contract.StallDetail:
        with self.lock:
            state = self.model.slow.stall(stall_id)
            run_id = state.message["run_id"]
            stalls = answers.stalls_of(self.model.slow, run_id, self.model.traces_by_step(self.model.run(run_id)))
        stall = next(stall for stall in stalls if stall["id"] == stall_id)
        return {"stall": stall, "stacks": read_stacks(state.stacks)}

    def gaps(self, run_id: int) -> contract.GapProfile:
        with self.lock:
            self.model.run(run_id)
            return answers.gaps(self.model.slow, run_id, self.is_sampled(run_id))

    def is_sampled(self, run_id: int) -> bool:
        """Return whether the time between the run's steps is being sampled."""
        return False

    def trace_record(self, trace_id: int) -> TraceRecord:
        with self.lock:
            return self.model.trace(trace_id).record.copy()

    def trace_context(self, trace_id: int) -> TraceContext:
        with self.lock:
            return self.model.trace_context(self.model.trace(trace_id))

    def trace_bytes(self, trace_id: int) -> bytes:
        """Return the serialized RunMetadata as TensorFlow returned it."""
        with self.lock:
            payload = self.model.trace(trace_id).payload
        try:
            return payload.raw()
        finally:
            self.trace_record(trace_id)  # if the trace was removed meanwhile, raises UnknownError instead of the reader's error

    def snapshot(self) -> Snapshot:
        with self.lock:
            return Snapshot.of(self.model)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with each change from now on. Return a function that ends this."""
        return self.publisher.subscribe(listener)

    @abstractmethod
    def set_trace_facts(self, trace_id: int, **facts: Any) -> TraceRecord:
        """Change fields (``facts``) of a trace's record. Raises ``UnknownError`` if the trace was removed."""

    def set_note(self, trace_id: int, note: str) -> TraceRecord:
        return self.set_trace_facts(trace_id, note=untrusted.text(note, MAX_NOTE))

    def set_bookmarks(self, trace_id: int, bookmarks: list[Bookmark]) -> TraceRecord:
        return self.set_trace_facts(trace_id, bookmarks=untrusted.bookmarks(bookmarks))

    def set_headline(self, trace_id: int, headline: str) -> None:
        if self.trace_record(trace_id)["headline"] != headline:
            self.set_trace_facts(trace_id, headline=untrusted.text(headline))


class SessionSource(SessionAnswers):
    """A session for the web layer, the command line and the exports: live (live.py) or reopened (files/saved.py)."""

    @abstractmethod
    def sample_gaps(self, run_id: int) -> None:
        """Sample stacks between the run's steps for the next 20 s. Raises ``UnsupportedError`` if no training is running."""

    @abstractmethod
    def request_traces(self, run_id: int | None, steps: int, with_graph: bool = False) -> None:
        """Trace the next ``steps`` steps of a run (None: of any run); 0 cancels the request.

        ``with_graph``: the run's next step collects the optimized graph of the run's function, instead of a trace.
        Raises ``UnsupportedError`` for a reopened session, which has no training to trace, and if no graph can be collected.
        """

    @abstractmethod
    def set_trace_all(self, on: bool) -> None: ...

    @abstractmethod
    def save(self, path: str) -> None:
        """Write into one .tftrace file all that was recorded before this call. The file atomically replaces an older one."""

    @abstractmethod
    def saved_bytes(self) -> Iterator[bytes]:
        """Return the file that ``save`` writes, in chunks. Needs memory for only one record at a time."""

    @abstractmethod
    def load(self, path: str, name: str = "") -> Loaded:
        """Add the runs and traces of a file, under new numbers. The file may have any format that tftracer opens.

        ``name``: the file's name as users see it (default: its base name). It becomes the runs' ``origin``.
        """

    @abstractmethod
    def close(self) -> None: ...


def placed_marks(marks: Sequence[SlowMark], history: History) -> list[contract.Mark]:
    """Return the marks, each with the number of its step.

    A mark between two steps has the number of the next step; one before the first step has None. No history: [].
    """
    rows = history.entries()
    if not len(rows) or not marks:
        return []
    step, count, start, mean = rows.T[:4]
    at = np.array([mark.at for mark in marks])
    entry = np.searchsorted(start, at, side="right") - 1
    entry_or_first = np.maximum(entry, 0)
    ends = np.append(start[1:], start[-1] + mean[-1] * count[-1])
    passed = np.clip((at - start[entry_or_first]) / np.maximum(ends[entry_or_first] - start[entry_or_first], 1e-9), 0, 1)
    number = step[entry_or_first] + np.where(
        count[entry_or_first] > 1,
        np.floor(passed * (count[entry_or_first] - 1)),
        at > start[entry_or_first] + mean[entry_or_first],
    )
    last = step[-1] + count[-1] - 1
    return [
        {
            "kind": mark.kind,
            "at": mark.at,
            "duration_s": mark.duration_s,
            "step": int(min(max(number[i], 1), last)) if entry[i] >= 0 else None,
            "text": mark.sentence,
        }
        for i, mark in enumerate(marks)
    ]
