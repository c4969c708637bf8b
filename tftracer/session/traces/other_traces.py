"""Selects the other traces of a run that a trace is compared with, and reads their answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from tftracer.contract.analyses import OTHER_TRACES_NEEDED, OtherAnswers, OtherTracesNeeded
from tftracer.contract.session import TraceRecord
from tftracer.errors import TracerError
from tftracer.session.answers import SessionSource
from tftracer.session.traces.traces_of_usual_steps import usual
from tftracer.trace.answers import Answers

#: At most this many bytes of other traces are read before an answer is shown.
MAX_BYTES_AT_ONCE = 16 << 20
#: Number of answers that are kept: all traces of a run are compared with nearly the same other traces.
_KEPT = 32


def readable(records: Iterable[TraceRecord]) -> list[TraceRecord]:
    """Return the records that are not known to be broken, oldest first."""
    return sorted((record for record in records if record["state"] != "broken"), key=lambda record: record["started_at"])


def newest_that_fit(records: Sequence[TraceRecord], max_bytes: int, min_traces: int = 0) -> list[TraceRecord]:
    """Return as many of the last records as fit into ``max_bytes`` together, but at least ``min_traces`` of them."""
    fitting, total = 0, 0
    for record in reversed(records):
        total += record["bytes"]
        if total > max_bytes and fitting >= min_traces:
            break
        fitting += 1
    return list(records[len(records) - fitting :])


def other_traces_of_run(source: SessionSource, trace_id: int, needed: OtherTracesNeeded) -> list[TraceRecord]:
    """Return the newest other traces of a trace's run; [] if fewer than ``needed.min_traces`` fit into ``MAX_BYTES_AT_ONCE``.

    Any thread may call; takes the session's lock. Raises ``UnknownError`` if the trace was removed.
    """
    run = source.run(source.trace_record(trace_id)["run_id"])
    newest = readable(usual(run["traces"], trace_id))[-needed.max_traces :]
    fitting = newest_that_fit(newest, MAX_BYTES_AT_ONCE)
    return fitting if len(fitting) >= needed.min_traces else []


class OtherTraces:
    """Reads the answers of other traces of a run, decoded in this process. Thread-safe.

    ``answers``: returns the Answers of a trace by its id.
    """

    def __init__(self, source: SessionSource, answers: Callable[[int], Answers]) -> None:
        self._source = source
        self._answers = answers
        self._reply = lru_cache(_KEPT)(self._ask)

    def of(self, trace_id: int, analysis: str) -> list[Any]:
        """Return the answers that one analysis needs. Traces that cannot be read are left out."""
        replies = []
        for record in other_traces_of_run(self._source, trace_id, OTHER_TRACES_NEEDED[analysis]):
            with contextlib.suppress(TracerError):
                replies.append(self._reply(record["id"], analysis))
        return replies

    def of_all(self, trace_id: int) -> OtherAnswers:
        """Return the answers for every analysis that needs other traces."""
        return {analysis: self.of(trace_id, analysis) for analysis in OTHER_TRACES_NEEDED}

    def _ask(self, trace_id: int, analysis: str) -> Any:
        """Return one trace's answer. Raises TracerError if the trace cannot be read."""
        needed = OTHER_TRACES_NEEDED[analysis]
        return getattr(self._answers(trace_id), needed.method)(**needed.arguments)
