"""The traces of a session that a script has asked about, decoded; the latest ones are kept, up to a number of nodes."""

from __future__ import annotations

import threading
from collections import OrderedDict

from tftracer.session.saved import SavedSession
from tftracer.trace.answers import Answers

#: About 300 bytes each, with what analyses keep.
KEPT_NODES = 1 << 21


class DecodedTraces:
    """Thread-safe."""

    def __init__(self, source: SavedSession) -> None:
        self._source = source
        self._kept: OrderedDict[int, Answers] = OrderedDict()
        self._lock = threading.Lock()

    def answers(self, trace_id: int) -> Answers:
        """Raises what decoding raises: FormatError and TruncatedError for bytes that are no trace."""
        with self._lock:
            answers = self._kept.pop(trace_id, None)
        if answers is None:
            answers = Answers(self._source.trace_bytes(trace_id), self._source.trace_context(trace_id), trace_id=trace_id)
            answers.trace  # noqa: B018 (decoded here, so that what cannot be read is known)
        with self._lock:
            self._kept[trace_id] = answers
            while len(self._kept) > 1 and sum(kept.trace.n for kept in self._kept.values()) > KEPT_NODES:
                self._kept.popitem(last=False)
        return answers
