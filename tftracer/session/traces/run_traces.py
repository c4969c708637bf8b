"""Which other traces of its run a trace is judged by, and what they say."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from tftracer.contract.analyses import OTHER_TRACES_NEEDED, OtherAnswers, OtherTracesNeeded
from tftracer.contract.session import TraceRecord
from tftracer.errors import TracerError
from tftracer.session.source import SessionSource
from tftracer.session.traces.usual import usual
from tftracer.trace.answers import Answers

#: How many bytes of other traces may be read before an answer is shown.
MAX_BYTES_AT_ONCE = 16 << 20
#: Answers that are kept: the traces of a run are judged by nearly the same others.
_KEPT = 32


def newest_readable(records: Sequence[TraceRecord], most: int) -> tuple[list[TraceRecord], list[TraceRecord]]:
    """(All that are not known to be broken, the newest ``most`` of these with the oldest first)."""
    readable = sorted((record for record in records if record["state"] != "broken"), key=lambda record: record["started_at"])
    return readable, readable[-most:]


def newest_that_fit(records: Sequence[TraceRecord], most_bytes: int, least: int = 0) -> list[TraceRecord]:
    """Those of the last that are together no larger than ``most_bytes``, but ``least`` of them whatever their size."""
    fitting, total = 0, 0
    for record in reversed(records):
        total += record["bytes"]
        if total > most_bytes and fitting >= least:
            break
        fitting += 1
    return list(records[len(records) - fitting :])


def other_traces_of_run(source: SessionSource, trace_id: int, needed: OtherTracesNeeded) -> list[TraceRecord]:
    """The newest other traces of its run; none where they are too few, or too large to read them in passing.

    From any thread; takes the session's lock. ``UnknownError``: the trace is there no more.
    """
    run = source.run(source.trace_record(trace_id)["run_id"])
    _, newest = newest_readable(usual(run["traces"], trace_id), needed.max_traces)
    fitting = newest_that_fit(newest, MAX_BYTES_AT_ONCE)
    return fitting if len(fitting) >= needed.min_traces else []


class OtherTraces:
    """What the other traces of a session's runs say, for whoever decodes them in this process. Thread-safe.

    ``answers``: of a trace, by its number.
    """

    def __init__(self, source: SessionSource, answers: Callable[[int], Answers]) -> None:
        self._source = source
        self._answers = answers
        self._kept: dict[tuple[int, str], Any] = {}
        self._lock = threading.Lock()

    def of(self, trace_id: int, analysis: str) -> list[Any]:
        """For one analysis. Traces that cannot be read are left out."""
        needed = OTHER_TRACES_NEEDED[analysis]
        replies = [self._reply(record["id"], analysis) for record in other_traces_of_run(self._source, trace_id, needed)]
        return [reply for reply in replies if reply is not None]

    def of_all(self, trace_id: int) -> OtherAnswers:
        """For every analysis that takes something of others."""
        return {analysis: self.of(trace_id, analysis) for analysis in OTHER_TRACES_NEEDED}

    def _reply(self, trace_id: int, analysis: str) -> Any | None:
        """None: the trace cannot be read."""
        key = (trace_id, analysis)
        with self._lock:
            if key in self._kept:
                return self._kept[key]
        needed = OTHER_TRACES_NEEDED[analysis]
        try:
            reply = getattr(self._answers(trace_id), needed.method)(**needed.arguments)
        except TracerError:
            return None
        with self._lock:
            self._kept[key] = reply
            if len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return reply
