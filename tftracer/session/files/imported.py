"""Makes a session from the traces in another tool's file.

A trace that is the whole file stays in the file; other traces are compressed in memory, one after the other. The traces are not
analyzed here, but later by ``SavedSession.analyze_pending``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tftracer.contract.basics import Finding
from tftracer.errors import FormatError
from tftracer.importers.imported import Imported, ImportedRun, ImportedTrace
from tftracer.session.files.reading import new_facts, read_statistics, read_trace_record, with_sizes
from tftracer.session.model import RunState, SessionModel, TraceState
from tftracer.storage.file_bytes import FileBytes
from tftracer.storage.spool import Memory, NewRecord, Spool
from tftracer.storage.tftrace_format import TRACE, StoredPayload, compress
from tftracer.storage.untrusted import text, texts
from tftracer.trace.model import TraceContext

#: Maximum size of a file's imported traces in memory, compressed.
_MEMORY = 1 << 31


@dataclass(frozen=True)
class PlainPayload(StoredPayload):
    """A whole file as a trace. Reading raises FormatError if the file has changed: its recorded facts may be wrong."""

    source: FileBytes
    changed_ns: int

    @classmethod
    def of(cls, file: FileBytes) -> PlainPayload:
        size = file.length()
        return cls(file, 0, size, size, None, file.changed_ns())

    def frame_unchecked(self) -> bytes:
        return compress(self.raw())

    frame_checked = frame_unchecked  # ``raw`` has checked the file already

    def is_whole(self) -> bool:
        return (self.source.length(), self.source.changed_ns()) == (self.size, self.changed_ns)

    def raw(self) -> bytes:
        data = self.source.read_at(0, self.size)
        if len(data) != self.size or not self.is_whole():
            raise FormatError(f"{self.source.name}: has changed since it was opened. Open it again.")
        return data


def model_of(imported: Imported, file: FileBytes | None = None) -> SessionModel:
    """Return the model of imported runs. ``file``: the file that they come from."""
    model, memory = SessionModel({**new_facts(), "command": imported.kind, "cut": imported.cut}), Spool(None, Memory(_MEMORY))
    for run in imported.runs:
        _add_run(model, memory, run, imported.findings, file)
    return model


def _add_run(model: SessionModel, memory: Spool, run: ImportedRun, file_findings: list[Finding], file: FileBytes | None) -> None:
    state = RunState(model.next_run_id(), text(run.title, 1000), texts(run.fetches), texts(run.feeds), text(run.options))
    state.statistics = read_statistics(vars(run))
    model.add_run(state)
    for trace in run.traces:
        payload = PlainPayload.of(file) if file is not None and trace.is_whole_file else _stored(memory, trace.raw)
        trace.raw = b""
        _add_trace(model, state, trace, file_findings, payload)


def _add_trace(
    model: SessionModel, run: RunState, trace: ImportedTrace, file_findings: list[Finding], payload: StoredPayload
) -> None:
    context = TraceContext(step=trace.step or None, step_s=trace.duration_s, findings=[*file_findings, *trace.findings])
    given = {
        "id": model.next_trace_id(),
        "run_id": run.id,
        "step": trace.step or None,
        "started_at": trace.started_at,
        "duration_s": trace.duration_s,
        "asked_by": "script",
        "note": "" if trace.title == run.title else trace.title,
    }
    model.add_trace(TraceState(with_sizes(read_trace_record(given), payload), context, payload))


def _stored(memory: Spool, raw: bytes) -> StoredPayload:
    return memory.append(NewRecord(TRACE, {}, compress(raw), len(raw))).payload
