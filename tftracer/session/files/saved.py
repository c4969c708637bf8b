"""A session reopened from a file: .tftrace, or whatever open_any.py can read. Holds the index alone, traces stay on disk."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from tftracer.contract.input_pipelines import InputPipelines
from tftracer.contract.ledger import Ledger
from tftracer.contract.memory_growth import ProcessMemory
from tftracer.contract.session import Bookmark, Loaded, Run, Session, StepTimes, TraceRecord
from tftracer.contract.stalls import GapProfile, RunStalls, StallDetail, StallList
from tftracer.errors import FormatError, TracerError, UnsupportedError
from tftracer.session import slow_answers
from tftracer.session.files.reading import read_model
from tftracer.session.files.snapshot import ReadHistory, Snapshot
from tftracer.session.model import RunState, SessionModel, TraceState, is_analyzed
from tftracer.session.publisher import Listener, Publisher
from tftracer.session.steps import columns as step_columns
from tftracer.session.steps.history import History
from tftracer.slow.record.log import SlowLog
from tftracer.slow.record.reading import read_stacks
from tftracer.storage import save, untrusted
from tftracer.storage.file_bytes import FileBytes
from tftracer.storage.reader import Reader
from tftracer.storage.roof_file import saved_roof
from tftracer.storage.tftrace import is_session
from tftracer.trace.contents import broken, read_contents
from tftracer.trace.model import TraceContext


class SavedSession:
    """Implements session/source.py's SessionSource. What is changed in it (notes) lasts once it is saved again."""

    def __init__(self, model: SessionModel) -> None:
        self._model = model
        self._damage, self._damaged = model.facts["damage"], set[int]()  # what the file's reader said; traces
        self._lock = threading.RLock()
        self._publisher = Publisher()
        #: Finds out what a trace's record says of its contents (trace/contents.py): in the viewer its server, which decodes the
        #: traces anyway.
        self.analyzer: Callable[[TraceRecord], dict[str, Any]] = self._contents

    # ------------------------------------------------------------------------------------------------------- reading

    def session(self) -> Session:
        with self._lock:
            return self._model.facts.copy()

    def runs(self) -> list[Run]:
        with self._lock:
            return [self._model.run_message(run, run.statistics) for run in self._model.runs.values()]

    def run(self, run_id: int) -> Run:
        with self._lock:
            run = self._model.run(run_id)
            return self._model.run_message(run, run.statistics)

    def step_times(self, run_id: int) -> StepTimes:
        with self._lock:
            run = self._model.run(run_id)
        return step_columns.step_times(run_id, step_columns.read_history(run.history))

    def ledger(self) -> Ledger:
        with self._lock:
            return self._model.ledger_message(lambda run: run.statistics)

    def input_pipelines(self) -> InputPipelines:
        with self._lock:
            return self._model.input_pipelines_message()

    def memory_growth(self) -> ProcessMemory:
        with self._lock:
            return self._model.memory_message()

    def run_stalls(self, run_id: int) -> RunStalls:
        with self._lock:
            run = self._model.run(run_id)
            answer, marks = slow_answers.run_stalls(self._model, run_id, run.statistics["steps"]), self._model.slow.all_marks()
        return slow_answers.with_history(answer, step_columns.read_history(run.history), run.statistics, marks)

    def all_stalls(self) -> StallList:
        with self._lock:
            return slow_answers.all_stalls(self._model, lambda run_id: self._model.run(run_id).statistics["steps"])

    def stall(self, stall_id: int) -> StallDetail:
        with self._lock:
            stall, payload = slow_answers.one_stall(self._model, stall_id), self._model.slow.stall(stall_id).stacks
        return {"stall": stall, "stacks": read_stacks(payload)}

    def gaps(self, run_id: int) -> GapProfile:
        with self._lock:
            return slow_answers.gaps(self._model, run_id, False)

    def trace_record(self, trace_id: int) -> TraceRecord:
        with self._lock:
            return self._model.trace(trace_id).record.copy()

    def trace_context(self, trace_id: int) -> TraceContext:
        with self._lock:
            return self._model.trace_context(self._model.trace(trace_id))

    def trace_bytes(self, trace_id: int) -> bytes:
        with self._lock:
            payload = self._model.trace(trace_id).payload
        return payload.raw()

    def run_state(self, run_id: int) -> RunState:
        with self._lock:
            return self._model.run(run_id)

    def trace_state(self, trace_id: int) -> TraceState:
        with self._lock:
            return self._model.trace(trace_id)

    def history(self, run_id: int) -> History:
        with self._lock:
            run = self._model.run(run_id)
        return step_columns.read_history(run.history)

    def slow_log(self) -> SlowLog:
        with self._lock:
            return self._model.slow

    def snapshot(self) -> Snapshot:
        def history_of(run: RunState) -> ReadHistory:
            return lambda: step_columns.read_history(run.history)

        with self._lock:
            return Snapshot.of(self._model, history_of, lambda run: run.statistics)

    # ------------------------------------------------------------------------------------------------------ changing

    def set_note(self, trace_id: int, note: str) -> TraceRecord:
        return self._set_trace_facts(trace_id, {"note": untrusted.text(note)})

    def set_bookmarks(self, trace_id: int, bookmarks: list[Bookmark]) -> TraceRecord:
        return self._set_trace_facts(trace_id, {"bookmarks": untrusted.bookmarks(bookmarks)})

    def set_headline(self, trace_id: int, headline: str) -> None:
        self._set_trace_facts(trace_id, {"headline": untrusted.text(headline)})

    def set_broken(self, trace_id: int, error: Exception) -> None:
        """Mark a trace that turned out to be unreadable."""
        self._set_trace_facts(trace_id, broken(error))

    def _set_trace_facts(self, trace_id: int, facts: dict[str, Any]) -> TraceRecord:
        """``facts``: fields of its record."""
        with self._lock:
            trace = self._model.trace(trace_id)
            record = trace.record = cast(TraceRecord, {**trace.record, **facts})
        self._publisher.publish({"type": "trace", "payload": record.copy()})
        return record.copy()

    def check_payloads(self, traces: Iterable[int] | None = None) -> None:
        """Find out which traces are damaged, and say so in their records and in the session's.

        ``traces``: their numbers; without them all, for which the whole file is read.
        """
        payloads = [(trace.record["id"], trace.payload) for trace in self._chosen(traces)]
        damaged = {trace_id for trace_id, payload in payloads if payload.size and not payload.is_whole()}
        if damaged <= self._damaged:
            return
        error = FormatError("its checksum is wrong, so that it is not what was written")
        for trace_id in damaged:
            self._set_trace_facts(trace_id, broken(error))
        with self._lock:
            self._damaged |= damaged
            number = "1 trace is" if len(self._damaged) == 1 else f"{len(self._damaged):,} traces are"
            self._model.facts["damage"] = f"{self._damage} {number} damaged.".strip()
        self._publisher.publish({"type": "session", "payload": self.session()})

    def analyze_pending(self, traces: Iterable[int] | None = None) -> None:
        """Find out what is in traces (``traces``: as above) of which the file does not say it. Takes as long as decoding them."""
        for trace in self._chosen(traces):
            if is_analyzed(trace.record):
                continue
            facts = self.analyzer(trace.record)
            if facts["state"] == "broken":  # it has not been asked for its findings
                facts["findings"] = [*trace.context.findings, *facts["findings"]]
            self._set_trace_facts(trace.record["id"], facts)

    def check_in_background(self) -> None:
        """Both, on a thread: they take longer than opening the file, and who subscribed hears of the results as they come."""
        _in_background(self.check_payloads, self.analyze_pending)

    def _contents(self, record: TraceRecord) -> dict[str, Any]:
        try:
            return read_contents(self.trace_bytes(record["id"]), self.trace_context(record["id"]))
        except TracerError as error:  # the file is damaged there
            return broken(error)

    def _chosen(self, traces: Iterable[int] | None) -> list[TraceState]:
        with self._lock:
            return list(self._model.traces.values()) if traces is None else [self._model.trace(number) for number in traces]

    def request_traces(self, run_id: int | None, steps: int, with_graph: bool = False) -> None:
        raise _ended()

    def sample_gaps(self, run_id: int) -> None:
        raise _ended("sampled")

    def set_trace_all(self, on: bool) -> None:
        raise _ended()

    # -------------------------------------------------------------------------------------------------- saving, loading

    def save(self, path: str) -> None:
        save.write_whole(path, self.saved_bytes())

    def saved_bytes(self) -> Iterator[bytes]:
        return save.stream(self.snapshot().records())

    def load(self, path: str, name: str = "") -> Loaded:
        other = open_session(path)
        other.check_payloads()
        with self._lock:
            runs, traces = self._add(other._model, name or Path(path).name)
        _in_background(self.analyze_pending)  # what a killed job did not find out
        facts = other._model.facts
        return {"ok": True, "runs": runs, "traces": traces, "cut": facts["cut"], "damage": facts["damage"]}

    def _add(self, other: SessionModel, origin: str) -> tuple[int, int]:
        for run in other.runs.values():
            added = replace(run, id=self._model.next_run_id(), origin=origin, traces={})
            self._model.add_run(added)
            for trace in other.traces_of(run.id):
                record: TraceRecord = {**trace.record, "id": self._model.next_trace_id(), "run_id": added.id}
                self._model.add_trace(replace(trace, record=record))
            self._model.slow.add_run(other.slow, run.id, added.id)
        return len(other.runs), len(other.traces)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        return self._publisher.subscribe(listener)

    def close(self) -> None:
        """The file closes when the last reader of its traces is done."""


def _in_background(*jobs: Callable[[], None]) -> None:
    def work() -> None:
        with contextlib.suppress(UnsupportedError):  # of an analyzer that has ended
            for job in jobs:
                job()

    threading.Thread(target=work, daemon=True).start()


def _ended(what: str = "traced") -> UnsupportedError:
    return UnsupportedError(f"This session was reopened from a file: there is no training in it that could be {what}.")


# --------------------------------------------------------------------------------------------------------------- opening


def open_session(path: str | os.PathLike[str]) -> SavedSession:
    """Open a saved session, a spool, or anything else that holds traces.

    ``StorageError`` if the file cannot be read, ``FormatError`` if it is none that tftracer knows or has nothing whole in it.
    """
    path = str(path)
    if Path(path).is_dir():  # of a profiler's logs
        return SavedSession(_imported(path))
    source = FileBytes(path)
    if is_session(source.read_at(0, 64)):
        return SavedSession(_with_roof(read_model(Reader(source), str(Path(path).absolute()))))
    return SavedSession(_imported(path, source))


def _with_roof(model: SessionModel) -> SessionModel:
    """Where the machine was measured after the session began."""
    facts = model.facts
    facts["measured_roof"] = facts["measured_roof"] or saved_roof(facts["host"], facts["processor"])
    return model


def _imported(path: str, file: FileBytes | None = None) -> SessionModel:
    from tftracer.importers import open_any
    from tftracer.session.files.imported import model_of

    model = model_of(open_any.open_any(path), file)
    model.facts["file"] = str(Path(path).absolute())
    return model
