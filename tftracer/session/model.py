"""A session's state: its facts, runs and traces. It writes no files and has no lock: its owner must hold one.

A live session changes it as things happen (store.py). files/reading.py builds the same state from a file's records, so that a
reopened session shows what the live page showed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from tftracer.contract.input_pipelines import InputPipelines
from tftracer.contract.ledger import Ledger
from tftracer.contract.memory_growth import ProcessMemory
from tftracer.contract.session import Run, RunStatistics, RunWithoutTraces, Session, TraceRecord
from tftracer.errors import UnknownError
from tftracer.input_pipelines import answer as pipelines_answer
from tftracer.input_pipelines import saved_pipelines as pipeline_facts
from tftracer.ledger import parts_of_wall_time as ledger_answer
from tftracer.ledger.activity import INPUT
from tftracer.ledger.largest_part_beside_steps import beside_steps
from tftracer.ledger.saved_ledger import LedgerFacts
from tftracer.memory_growth import answer as memory_answer
from tftracer.memory_growth import saved_memory_growth as memory_facts
from tftracer.session.steps.columns import read_history
from tftracer.session.steps.history import History
from tftracer.session.steps.near_step import near_step
from tftracer.session.steps.statistics import LiveRun
from tftracer.session.traces.traces_of_usual_steps import durations_s, follows_traced, usual
from tftracer.slow.answer.answers import slow_steps
from tftracer.slow.answer.groups import Traces
from tftracer.slow.record.kept_slow_steps import SlowLog
from tftracer.storage.tftrace_format import Record, StoredPayload
from tftracer.trace.model import TraceContext


def no_statistics() -> RunStatistics:
    """Return the statistics of a run whose steps are not known."""
    unknown: dict[str, Any] = dict.fromkeys(RunStatistics.__annotations__)
    return cast(RunStatistics, {**unknown, "steps": 0, "recent_s": []})


def is_analyzed(record: TraceRecord) -> bool:
    """Return whether a trace was analyzed, or found to be broken. False before the analysis, and if a kill prevented it."""
    return record["state"] != "pending"


@dataclass
class TraceState:
    record: TraceRecord
    context: TraceContext  # without facts about other traces of the run, which ``SessionModel.trace_context`` adds
    payload: StoredPayload
    record_bytes: int = 0  # size of the whole record in its file


@dataclass
class RunState:
    """A run's definition, its latest numbers, and where its step times are."""

    id: int
    title: str
    fetches: list[str]
    feeds: list[str]
    options: str
    statistics: RunStatistics = field(default_factory=no_statistics)
    traces: dict[int, None] = field(default_factory=dict)  # ids, oldest first
    origin: str = ""  # the file that it was loaded from; "" for the session's own runs
    history: list[Record] = field(default_factory=list)  # if read from a file: HISTORY, then the STEPS after it
    definition: str = ""
    live: LiveRun | None = None  # set for runs of this process

    def numbers(self) -> RunStatistics:
        return self.live.statistics.message() if self.live else self.statistics

    def history_reader(self) -> Callable[[], History]:
        """Return a function that reads the step times without the lock, from a copy made now or from the file."""
        if self.live is None:
            return partial(read_history, self.history)
        copied = self.live.statistics.history.copy()
        return lambda: copied


class SessionModel:
    def __init__(self, facts: Session) -> None:
        self.facts = facts
        self.runs: dict[int, RunState] = {}
        self.traces: dict[int, TraceState] = {}
        self.slow = SlowLog()
        self.ledger: LedgerFacts | None = None
        self.input_pipelines: pipeline_facts.PipelineFacts | None = None
        self.memory: memory_facts.MemoryFacts | None = None
        self._last_run_id = 0
        self._known_ledger: tuple[LedgerFacts, Ledger] | None = None  # a ledger, and its message
        self._last_trace_id = 0  # the highest id so far, also of a removed trace: ids are never used again

    # ------------------------------------------------------------------------------------------------------- reading

    def run(self, run_id: int) -> RunState:
        try:
            return self.runs[run_id]
        except (KeyError, TypeError):
            raise UnknownError(f"There is no run {run_id} in this session.") from None

    def trace(self, trace_id: int) -> TraceState:
        try:
            return self.traces[trace_id]
        except (KeyError, TypeError):
            gone = isinstance(trace_id, int) and 0 < trace_id <= self._last_trace_id
            why = " It has made way for newer ones (keep_traces)." if gone else ""
            raise UnknownError(f"There is no trace {trace_id} in this session.{why}") from None

    def run_message(self, run: RunState) -> Run:
        traces = [self.traces[trace_id].record.copy() for trace_id in run.traces]
        return {**self.run_without_traces(run), "traces": traces}

    def run_without_traces(self, run: RunState) -> RunWithoutTraces:
        statistics, handle = run.numbers(), run.live.handle if run.live else None
        traces = self.traces_by_step(run) if self.slow.count(run.id) else {}
        return {
            **statistics,
            "id": run.id,
            "origin": run.origin,
            "title": run.title,
            "fetches": list(run.fetches),
            "feeds": list(run.feeds),
            "options": run.options,
            "definition": run.definition,
            "graph_on_request": handle.graph_on_request if handle else False,
            "pending_traces": handle.requested if handle else 0,
            "slow_steps": slow_steps(self.slow, run.id, statistics["steps"], traces),
        }

    def traces_of(self, run_id: int) -> list[TraceState]:
        """Return the run's traces, oldest first."""
        return [self.traces[trace_id] for trace_id in self.run(run_id).traces]

    def traces_by_step(self, run: RunState) -> Traces:
        records = [self.traces[trace_id].record for trace_id in run.traces]
        return {record["step"]: record["id"] for record in records if record["step"] is not None}

    def trace_context(self, trace: TraceState) -> TraceContext:
        """Return the context with the present facts about the run and its other traces."""
        run, record = self.run(trace.record["run_id"]), trace.record
        return replace(
            trace.context,
            step=record["step"],
            run_median_s=run.numbers()["p50_s"],
            feeds=len(run.feeds),
            between_lines=self.slow.lines_of(run.id, whole_turns=False),
            sampled_gc=self.slow.sampled_gc(run.id),
            turn_lines=self.slow.lines_of(run.id, whole_turns=True),
            lock_holder=self.slow.lock_holder(run.id),
            slow_times=self.slow.slow_times(run.id, record["step"]),
            **self.of_other_traces(run.id, record["step"], record["id"]),
            **near_step(run.history_reader()(), record["step"]),
            measured_roof=trace.context.measured_roof or (None if run.origin else self.facts["measured_roof"]),
            title=run.title,
            **({} if self.facts["live"] or run.origin else self._beside_steps(run.title)),
        )

    def _beside_steps(self, title: str) -> dict[str, Any]:
        """Return what the training did outside the run's usual steps, according to the whole ledger, as fields of a trace's
        context."""
        if self.ledger is None:
            return {}
        if self._known_ledger is None or self._known_ledger[0] is not self.ledger:
            self._known_ledger = self.ledger, self.ledger_message()
        beside = beside_steps(self._known_ledger[1], title)
        return beside._asdict() if beside else {"beside_share": None}

    def of_other_traces(self, run_id: int, step: int | None, except_trace: int = 0) -> dict[str, Any]:
        """Return the fields of a trace's context about the other traces of its run."""
        records = [trace.record for trace in self.traces_of(run_id)]
        others = durations_s(usual(records, except_trace))
        return {
            "other_traced": len(others),
            "fastest_traced_s": min(others, default=None),
            "follows_traced": follows_traced(records, step),
        }

    def ledger_message(self) -> Ledger:
        runs = list(map(self.run_without_traces, self.runs.values()))
        slow = self.slow
        return ledger_answer.ledger(self.ledger, runs, slow.gaps.get, self.facts["steps_lost"], slow.kinds_of, slow.periods_of)

    def input_pipelines_message(self) -> InputPipelines:
        waited = sum(entry.own_s for entry in self.ledger.entries if entry.rank == INPUT) if self.ledger else 0.0
        return pipelines_answer.input_pipelines(self.input_pipelines, waited)

    def memory_message(self) -> ProcessMemory:
        return memory_answer.memory_growth(self.memory, self.facts["live"] and self.facts["ended_at"] is None)

    # ------------------------------------------------------------------------------------------------------ changing

    def next_run_id(self) -> int:
        self._last_run_id += 1
        return self._last_run_id

    def next_trace_id(self) -> int:
        self._last_trace_id += 1
        return self._last_trace_id

    def add_run(self, run: RunState) -> None:
        self.runs[run.id] = run
        self._last_run_id = max(self._last_run_id, run.id)

    def add_trace(self, trace: TraceState) -> None:
        """Add a trace. Its run must have been added before."""
        trace_id = trace.record["id"]
        self.traces[trace_id] = trace
        self.runs[trace.record["run_id"]].traces[trace_id] = None
        self._last_trace_id = max(self._last_trace_id, trace_id)

    def remove_trace(self, trace_id: int) -> None:
        trace = self.traces.pop(trace_id, None)
        if trace:
            self.runs[trace.record["run_id"]].traces.pop(trace_id, None)
