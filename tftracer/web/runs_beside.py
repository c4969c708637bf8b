"""The other traces of two traces' runs, by which a comparison judges the two.

Runs on the server's loop; the engine decodes and counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tftracer.comparison.run_steps import step_times_in_words
from tftracer.comparison.two_traces import MOST_OF_ONE_RUN, MOST_TRACES, Beside
from tftracer.contract.session import TraceRecord
from tftracer.engine.decoded_traces import Question
from tftracer.session.source import SessionSource
from tftracer.session.traces.run_traces import how_many_fit, newest_readable
from tftracer.session.traces.usual import measures_tracing
from tftracer.storage.trace_payload import TraceKey
from tftracer.web.answer_cache import AnswerCache
from tftracer.web.other_traces import ask_each

#: How large the other traces of a run may be together: about 4 million nodes. ``MOST_TRACES`` are read whatever their size.
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class RunsBeside:
    """``a``, ``b``: the newest other traces of each run; of one run all are in ``a``."""

    a: list[TraceKey]
    b: list[TraceKey]
    same_run: bool
    older: int
    broken: int
    step_times: str

    @property
    def tag(self) -> str:
        """Differs where the comparison may."""
        tags = " ".join(trace.tag for trace in (*self.a, *self.b))
        return f"{tags} {self.same_run} {self.older} {self.broken} {self.step_times}"


def runs_beside(source: SessionSource, name: Callable[[TraceRecord], TraceKey], first: int, second: int) -> RunsBeside:
    """From any thread; takes the session's lock, and may read the disk. ``UnknownError``: a trace is there no more."""
    runs = [source.run(source.trace_record(number)["run_id"]) for number in (first, second)]
    same_run = runs[0]["id"] == runs[1]["id"]
    a, b = (
        [record for record in run["traces"] if record["id"] not in (first, second) and measures_tracing(record["asked_by"])]
        for run in runs
    )
    if same_run:
        b = []
    usable, newest = zip(*(newest_readable(side, MOST_OF_ONE_RUN if same_run else MOST_TRACES) for side in (a, b)))
    read = [side[len(side) - how_many_fit([each["bytes"] for each in side], MOST_BYTES, MOST_TRACES) :] for side in newest]
    times = "" if same_run else step_times_in_words(*(source.step_times(run["id"]) for run in runs))
    return RunsBeside(
        [name(record) for record in read[0]],
        [name(record) for record in read[1]],
        same_run,
        sum(map(len, usable)) - sum(map(len, read)),
        len(a) + len(b) - sum(map(len, usable)),
        times,
    )


async def asked(runs: RunsBeside, compared: tuple[TraceKey, TraceKey], by: str, answers: AnswerCache) -> Beside:
    """Their totals, and when they and the ``compared`` traces were recorded. Traces that cannot be read, or that were removed in
    the meantime, are counted."""
    question = Question("op_totals", {"by": by})
    a, b = [await ask_each(traces, question, answers) for traces in (runs.a, runs.b)]
    unreadable = runs.broken + len(runs.a) + len(runs.b) - len(a) - len(b)
    totals_a, totals_b = ([body for _, body in side] for side in (a, b))
    started = [[own.started_at, *(trace.started_at for trace, _ in side)] for own, side in zip(compared, (a, b))]
    return Beside(totals_a, totals_b, runs.same_run, runs.older, unreadable, runs.step_times, *started)
