"""Ops over the newest traces of one run. The engine decodes the traces and computes the table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tftracer.comparison.run_ops import RunTraces
from tftracer.contract.analyses import GROUPINGS, LEAST_TRACES
from tftracer.contract.encoding import Body
from tftracer.contract.session import TraceRecord
from tftracer.engine.decoded_traces import Question
from tftracer.session.traces.run_traces import how_many_fit, newest_readable
from tftracer.storage.trace_payload import TraceKey
from tftracer.web.other_traces import ask_each
from tftracer.web.trace_handlers import AnswerHandler

#: Traces of a run that are read, and how large they may be together: about 4 million nodes. Four are read whatever their size.
MOST_TRACES = 32
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Chosen:
    """The traces of a run to read, the oldest first."""

    traces: dict[TraceKey, int | None]  # their steps
    older: int
    broken: int

    @property
    def tag(self) -> str:
        """Differs where the answer may."""
        return f"{' '.join(trace.tag for trace in self.traces)} {self.older} {self.broken}"


def chosen(records: Sequence[TraceRecord], name: Callable[[TraceRecord], TraceKey]) -> Chosen:
    readable, newest = newest_readable(records, MOST_TRACES)
    read = newest[len(newest) - within_bytes([record["bytes"] for record in newest]) :]
    return Chosen({name(record): record["step"] for record in read}, len(readable) - len(read), len(records) - len(readable))


def within_bytes(sizes: Sequence[int]) -> int:
    """How many of the last are together no larger than ``MOST_BYTES``; of ``LEAST_TRACES`` the size does not matter."""
    return how_many_fit(sizes, MOST_BYTES, LEAST_TRACES)


class RunOpsHandler(AnswerHandler):
    async def get(self, run: str) -> None:
        by, run_id = self.one_of("by", GROUPINGS), self.number(run, "run")
        source, answers = self.services.source, self.services.answers
        await self.services.rate_limit.answer()
        traces = await self.quickly(lambda: chosen(source.run(run_id)["traces"], answers.name))
        if not self.is_cached(f"{traces.tag} runs/{run_id}/ops?by={by}"):
            await self.send_answer(self.ask(traces, by))

    async def ask(self, traces: Chosen, by: str) -> Body:
        """Traces that cannot be read, or that were removed in the meantime, are counted."""
        answers = self.services.answers
        question = Question("op_totals", {"by": by, "with_flops": True})
        bodies = await ask_each(list(traces.traces), question, answers)
        totals = [(key.id, traces.traces[key], body) for key, body in bodies]
        unreadable = traces.broken + len(traces.traces) - len(totals)
        return await answers.run_ops(RunTraces(totals, traces.older, unreadable), by, self.format())
