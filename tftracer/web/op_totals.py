"""The op totals of several traces of a run: each is asked one question, one after the other.

Runs on the server's loop. Whoever does not want them any more stops asking, so that no further trace is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tftracer.contract.session import TraceRecord
from tftracer.engine.decoded_traces import AnswerFormat, Question
from tftracer.errors import TracerError
from tftracer.session.source import SessionSource
from tftracer.storage.trace_payload import TraceKey
from tftracer.trace.analyses.over_traces import LEAST_TRACES
from tftracer.web.answer_cache import AnswerCache

#: 10,000 ops have names of a megabyte, which compress well.
COMPRESSED = AnswerFormat(True, "zstd")
#: So large may a run's other traces be together that are read before a verdict is shown.
MOST_BYTES_AT_ONCE = 16 << 20


def newest_readable(records: Sequence[TraceRecord], most: int) -> tuple[list[TraceRecord], list[TraceRecord]]:
    """(All that are not known to be broken, the newest ``most`` of these with the oldest first)."""
    readable = sorted((record for record in records if record["state"] != "broken"), key=lambda record: record["started_at"])
    return readable, readable[-most:]


async def op_totals(
    traces: Sequence[TraceKey], by: str, answers: AnswerCache, with_flops: bool = False
) -> list[tuple[TraceKey, bytes]]:
    """Encoded ``Answers.op_totals`` of those that can be read, and that were not removed in the meantime."""
    totals, question = [], Question("op_totals", {"by": by, "with_flops": with_flops})
    for trace in traces:
        try:
            body = await answers.ask(trace, question, COMPRESSED)
        except TracerError:
            continue
        totals.append((trace, b"".join(body.chunks)))
    return totals


def others_of_run(source: SessionSource, name: Callable[[TraceRecord], TraceKey], trace: TraceKey) -> list[TraceKey]:
    """Enough other traces of its run for a verdict to speak of rates, the newest; none where there are fewer, or they are large.

    From any thread; takes the session's lock. ``UnknownError``: the trace is there no more.
    """
    run = source.run(source.trace_record(trace.id)["run_id"])
    _, newest = newest_readable([record for record in run["traces"] if record["id"] != trace.id], LEAST_TRACES - 1)
    is_enough = len(newest) == LEAST_TRACES - 1 and sum(record["bytes"] for record in newest) <= MOST_BYTES_AT_ONCE
    return [name(record) for record in newest] if is_enough else []
