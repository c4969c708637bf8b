"""Answers of several traces of a run: selects the traces, and asks each the same question, one after the other.

Runs on the server's loop. If the caller is cancelled, no further trace is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tftracer.contract.analyses import MIN_TRACES, OTHER_TRACES_NEEDED
from tftracer.contract.session import TraceRecord
from tftracer.engine.decoded_traces import AnswerFormat, EncodedOtherAnswers, Question
from tftracer.errors import TracerError
from tftracer.session.answers import SessionSource
from tftracer.session.traces.other_traces import newest_that_fit, other_traces_of_run, readable
from tftracer.storage.trace_payload import TraceKey
from tftracer.web.answer_cache import AnswerCache

#: The names in the totals of 10,000 ops take a megabyte and compress well.
COMPRESSED = AnswerFormat(True, "zstd")

#: Limits of the traces of a run that are read: their number, and their bytes in total (about 4 million nodes).
MAX_TRACES = 32
MAX_BYTES = 1 << 30

#: Analysis -> the other traces that it needs.
OtherTraceKeys = dict[str, list[TraceKey]]


async def ask_each(traces: Iterable[TraceKey], question: Question, answers: AnswerCache) -> list[tuple[TraceKey, bytes]]:
    """Return (trace, encoded answer) of each trace. Traces that cannot be read, or were removed meanwhile, are left out."""
    replies = []
    for trace in traces:
        try:
            body = await answers.ask(trace, question, COMPRESSED)
        except TracerError:
            continue
        replies.append((trace, b"".join(body.chunks)))
    return replies


def other_trace_keys(
    source: SessionSource, key_of: Callable[[TraceRecord], TraceKey], trace: TraceKey, analyses: Sequence[str]
) -> OtherTraceKeys:
    """Return the other traces that each analysis needs. May be called from any thread; takes the session's lock."""
    records_of = {analysis: other_traces_of_run(source, trace.id, OTHER_TRACES_NEEDED[analysis]) for analysis in analyses}
    return {analysis: [key_of(record) for record in records] for analysis, records in records_of.items()}


async def other_answers(traces: OtherTraceKeys, answers: AnswerCache) -> EncodedOtherAnswers:
    """Return the other traces' answers that each analysis needs."""
    replies = {}
    for analysis, keys in traces.items():
        needed = OTHER_TRACES_NEEDED[analysis]
        question = Question(needed.method, needed.arguments)
        replies[analysis] = [reply for _, reply in await ask_each(keys, question, answers)]
    return replies


@dataclass(frozen=True)
class RunTraceKeys:
    """The traces of a run to read, oldest first, and the numbers of those that are not read."""

    traces: dict[TraceKey, int | None]  # trace -> its step
    older: int  # readable traces beyond the limits
    broken: int  # traces that cannot be read

    @property
    def tag(self) -> str:
        """A text that changes whenever the answer may change."""
        return f"{' '.join(trace.tag for trace in self.traces)} {self.older} {self.broken}"


def traces_to_read(
    records: Sequence[TraceRecord],
    key_of: Callable[[TraceRecord], TraceKey],
    max_traces: int = MAX_TRACES,
    min_traces: int = MIN_TRACES,
) -> RunTraceKeys:
    """Select the newest readable traces of a run: at most ``max_traces``, and ``min_traces`` whatever their size."""
    known = readable(records)
    read = newest_that_fit(known[-max_traces:], MAX_BYTES, min_traces)
    return RunTraceKeys({key_of(record): record["step"] for record in read}, len(known) - len(read), len(records) - len(known))
