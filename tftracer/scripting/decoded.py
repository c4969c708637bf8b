"""The decoded traces of a session that a script has read. The last used traces are cached, up to a total number of nodes."""

from __future__ import annotations

import threading

from tftracer.engine.bounded_cache import BoundedCache
from tftracer.memory_limit import memory_errors
from tftracer.session.files.saved import SavedSession
from tftracer.trace.answers import Answers

#: Maximum number of nodes in all cached traces; a node takes about 300 bytes, with the results of analyses.
KEPT_NODES = 1 << 21
KEPT_TRACES = 10_000


class DecodedTraces:
    """A cache of decoded traces. Thread-safe."""

    def __init__(self, source: SavedSession) -> None:
        self._source = source
        self._kept: BoundedCache[Answers] = BoundedCache(KEPT_TRACES, KEPT_NODES)
        self._lock = threading.Lock()

    def answers(self, trace_id: int) -> Answers:
        """Return the ``Answers`` of a trace.

        Raises FormatError or TruncatedError for invalid bytes, HelperError if memory runs out.
        """
        with self._lock:
            answers = self._kept.get(trace_id)
        if answers is None:
            with memory_errors(self._source.trace_record(trace_id)["bytes"]):
                answers = Answers(self._source.trace_bytes(trace_id), self._source.trace_context(trace_id), trace_id=trace_id)
                nodes = answers.trace.n  # this decodes the trace, so that errors are raised here
            with self._lock:
                self._kept.put(trace_id, answers, nodes)
        return answers

    def forget(self) -> None:
        with self._lock:
            self._kept.clear()
