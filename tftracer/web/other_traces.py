"""What several traces of a run say: each is asked one question, one after the other.

Runs on the server's loop. Whoever does not want the answers any more stops asking, so that no further trace is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tftracer.contract.analyses import OTHERS_NEEDED
from tftracer.contract.session import TraceRecord
from tftracer.engine.decoded_traces import AnswerFormat, EncodedOtherAnswers, Question
from tftracer.errors import TracerError
from tftracer.session.source import SessionSource
from tftracer.session.traces.run_traces import other_traces_of_run
from tftracer.storage.trace_payload import TraceKey
from tftracer.web.answer_cache import AnswerCache

#: The totals of 10,000 ops have names of a megabyte, which compress well.
COMPRESSED = AnswerFormat(True, "zstd")

#: The other traces by which a trace is judged, by analysis.
OtherTraceKeys = dict[str, list[TraceKey]]


async def ask_each(traces: Sequence[TraceKey], question: Question, answers: AnswerCache) -> list[tuple[TraceKey, bytes]]:
    """The encoded answers of those that can be read, and that were not removed in the meantime."""
    replies = []
    for trace in traces:
        try:
            body = await answers.ask(trace, question, COMPRESSED)
        except TracerError:
            continue
        replies.append((trace, b"".join(body.chunks)))
    return replies


def other_trace_keys(
    source: SessionSource, name: Callable[[TraceRecord], TraceKey], trace: TraceKey, analyses: Sequence[str]
) -> OtherTraceKeys:
    """For analyses that take something of others. From any thread; takes the session's lock."""
    records_of = {analysis: other_traces_of_run(source, trace.id, OTHERS_NEEDED[analysis]) for analysis in analyses}
    return {analysis: [name(record) for record in records] for analysis, records in records_of.items()}


async def other_answers(traces: OtherTraceKeys, answers: AnswerCache) -> EncodedOtherAnswers:
    """What each analysis takes of the others."""
    replies = {}
    for analysis, keys in traces.items():
        needed = OTHERS_NEEDED[analysis]
        question = Question(needed.method, needed.arguments)
        replies[analysis] = [reply for _, reply in await ask_each(keys, question, answers)]
    return replies
