"""A session reopened from a .tftrace file, or any file that open_any.py can read. Traces stay on disk; the index is in memory."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from tftracer.contract.session import Loaded, TraceRecord
from tftracer.errors import FormatError, TracerError, UnsupportedError
from tftracer.session.answers import SessionSource
from tftracer.session.files.reading import read_model
from tftracer.session.model import SessionModel, TraceState, is_analyzed
from tftracer.storage.file_bytes import FileBytes
from tftracer.storage.roof_file import saved_roof
from tftracer.storage.spool import closed_file
from tftracer.storage.tftrace_format import is_session
from tftracer.storage.tftrace_reader import Reader
from tftracer.storage.whole_file import write_whole
from tftracer.trace.record_fields import broken, read_contents


class SavedSession(SessionSource):
    """A reopened session. Changes, such as notes, are lost unless the session is saved again."""

    def __init__(self, model: SessionModel) -> None:
        super().__init__(model)
        self._damage, self._damaged_ids = model.facts["damage"], set[int]()  # the reader's message; ids of damaged traces
        #: Returns the facts about a trace's contents for its record (trace/record_fields.py). The viewer replaces it by
        #: its server's analyzer, which decodes the traces anyway.
        self.analyzer: Callable[[TraceRecord], dict[str, Any]] = self._contents

    def trace_state(self, trace_id: int) -> TraceState:
        with self.lock:
            return self.model.trace(trace_id)

    # ------------------------------------------------------------------------------------------------------ changing

    def set_broken(self, trace_id: int, error: Exception) -> None:
        """Mark a trace that turned out to be unreadable."""
        self.set_trace_facts(trace_id, **broken(error))

    def set_trace_facts(self, trace_id: int, **facts: Any) -> TraceRecord:
        with self.lock:
            trace = self.model.trace(trace_id)
            record = trace.record = cast(TraceRecord, {**trace.record, **facts})
        self.publisher.publish({"type": "trace", "payload": record.copy()})
        return record.copy()

    def check_payloads(self, traces: Iterable[int] | None = None) -> None:
        """Find the damaged traces, and mark them in their records and in the session's facts.

        ``traces``: the ids to check; None: all, which reads the whole file.
        """
        payloads = [(trace.record["id"], trace.payload) for trace in self._selected_traces(traces)]
        damaged = {trace_id for trace_id, payload in payloads if payload.size and not payload.is_whole()}
        if damaged <= self._damaged_ids:
            return
        error = FormatError("its checksum is wrong: its bytes were changed")
        for trace_id in damaged:
            self.set_trace_facts(trace_id, **broken(error))
        with self.lock:
            self._damaged_ids |= damaged
            number = "1 trace is" if len(self._damaged_ids) == 1 else f"{len(self._damaged_ids):,} traces are"
            self.model.facts["damage"] = f"{self._damage} {number} damaged.".strip()
        self.publisher.publish({"type": "session", "payload": self.session()})

    def analyze_pending(self, traces: Iterable[int] | None = None) -> None:
        """Analyze traces whose contents are not in the file yet. Takes as long as decoding them. ``traces``: ids; None: all."""
        for trace in self._selected_traces(traces):
            if is_analyzed(trace.record):
                continue
            facts = self.analyzer(trace.record)
            if facts["state"] == "broken":  # ``broken`` does not know the findings of the trace's context
                facts["findings"] = [*trace.context.findings, *facts["findings"]]
            self.set_trace_facts(trace.record["id"], **facts)

    def check_in_background(self) -> None:
        """Run ``check_payloads`` and ``analyze_pending`` on a thread: they take long. Subscribers get each result when known."""
        _in_background(self.check_payloads, self.analyze_pending)

    def _contents(self, record: TraceRecord) -> dict[str, Any]:
        try:
            return read_contents(self.trace_bytes(record["id"]), self.trace_context(record["id"]))
        except TracerError as error:  # the file is damaged there
            return broken(error)

    def _selected_traces(self, traces: Iterable[int] | None) -> list[TraceState]:
        with self.lock:
            return list(self.model.traces.values()) if traces is None else [self.model.trace(number) for number in traces]

    def request_traces(self, run_id: int | None, steps: int, with_graph: bool = False) -> None:
        raise _no_training()

    def sample_gaps(self, run_id: int) -> None:
        raise _no_training("sampled")

    def set_trace_all(self, on: bool) -> None:
        raise _no_training()

    # -------------------------------------------------------------------------------------------------- saving, loading

    def save(self, path: str) -> None:
        write_whole(path, self.saved_bytes())

    def saved_bytes(self) -> Iterator[bytes]:
        return closed_file(self.snapshot().records())

    def load(self, path: str, name: str = "") -> Loaded:
        other = open_session(path)
        other.check_payloads()
        with self.lock:
            self._add(other.model, name or Path(path).name)
        _in_background(self.analyze_pending)  # the traces that a killed job did not analyze
        return other.as_loaded()

    def as_loaded(self) -> Loaded:
        """Return the answer to a request that has added this session to another one."""
        model = self.model
        cut, damage = model.facts["cut"], model.facts["damage"]
        return {"ok": True, "runs": len(model.runs), "traces": len(model.traces), "cut": cut, "damage": damage}

    def _add(self, other: SessionModel, origin: str) -> None:
        for run in other.runs.values():
            added = replace(run, id=self.model.next_run_id(), origin=origin, traces={})
            self.model.add_run(added)
            for trace in other.traces_of(run.id):
                record: TraceRecord = {**trace.record, "id": self.model.next_trace_id(), "run_id": added.id}
                self.model.add_trace(replace(trace, record=record))
            self.model.slow.add_run(other.slow, run.id, added.id)

    def close(self) -> None:
        """Do nothing: the file closes when the last reader of its traces is done."""


def _in_background(*jobs: Callable[[], None]) -> None:
    def work() -> None:
        with contextlib.suppress(UnsupportedError):  # the analyzer has ended
            for job in jobs:
                job()

    threading.Thread(target=work, daemon=True).start()


def _no_training(what: str = "traced") -> UnsupportedError:
    return UnsupportedError(f"This session was reopened from a file: there is no training in it that could be {what}.")


# --------------------------------------------------------------------------------------------------------------- opening


def open_session(path: str | os.PathLike[str]) -> SavedSession:
    """Open a saved session, a spool, or anything else that holds traces.

    Raises ``StorageError`` if the file cannot be read, ``FormatError`` if its format is unknown or nothing in it is readable.
    """
    path = str(path)
    if Path(path).is_dir():  # a profiler's logs
        return SavedSession(_imported(path))
    source = FileBytes(path)
    if is_session(source.read_at(0, 64)):
        return SavedSession(_with_roof(read_model(Reader(source), str(Path(path).absolute()))))
    return SavedSession(_imported(path, source))


def _with_roof(model: SessionModel) -> SessionModel:
    """Add the measured roof, if the machine was measured only after the session began."""
    facts = model.facts
    facts["measured_roof"] = facts["measured_roof"] or saved_roof(facts["host"], facts["processor"])
    return model


def _imported(path: str, file: FileBytes | None = None) -> SessionModel:
    from tftracer.importers import open_any
    from tftracer.session.files.imported import model_of

    model = model_of(open_any.open_any(path), file)
    model.facts["file"] = str(Path(path).absolute())
    return model
