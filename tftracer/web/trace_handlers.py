"""Handlers for traces: one for all analyses of ``contract/analyses.py``, one for comparisons, one for ops over a run."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tftracer.comparison.ops_over_traces import RunTraces
from tftracer.comparison.step_times_in_words import step_times_in_words
from tftracer.comparison.two_traces import MAX_OF_ONE_RUN, MAX_TRACES, OtherTotals
from tftracer.contract.analyses import GROUPINGS, MEASURES, OTHER_TRACES_NEEDED, Analysis, Parameter
from tftracer.contract.encoding import Body
from tftracer.contract.session import TraceRecord
from tftracer.engine.decoded_traces import AnswerFormat, Question
from tftracer.session.answers import SessionSource
from tftracer.session.traces.traces_of_usual_steps import measures_tracing
from tftracer.storage.trace_payload import TraceKey
from tftracer.version import __version__
from tftracer.web.answer_cache import AnswerCache
from tftracer.web.ask_several_traces import (
    OtherTraceKeys,
    RunTraceKeys,
    ask_each,
    other_answers,
    other_trace_keys,
    traces_to_read,
)
from tftracer.web.handlers import ID_DIGITS, ApiHandler
from tftracer.web.refusal import Refusal
from tftracer.web.services import Services

MAX_DEPTH = 5


class TraceHandlerBase(ApiHandler):
    """The base of handlers for one or two traces."""

    async def find_trace(self, number: str) -> TraceKey:
        """Return the engine's key of the trace with this number. Refuses an unknown or broken trace."""
        trace_id = self.number(number, "trace")
        source, answers = self.services.source, self.services.answers

        def look_up() -> tuple[TraceRecord, TraceKey]:
            record = source.trace_record(trace_id)
            return record, answers.key_of(record)

        await self.services.rate_limit.wait_to_answer()
        record, trace = await self.run_on_worker(look_up)
        if record["state"] == "broken":
            raise Refusal(409, "broken_trace", f"Trace {trace_id} cannot be read; its record says why.")
        return trace

    async def find_other_traces(self, trace: TraceKey, *analyses: str) -> OtherTraceKeys:
        """Return the other traces that these analyses of a trace need."""
        with_others = [analysis for analysis in analyses if analysis in OTHER_TRACES_NEEDED]
        if not with_others:
            return {}
        return await self.run_on_worker(other_trace_keys, self.services.source, self.services.answers.key_of, trace, with_others)


class AnswerHandler(TraceHandlerBase):
    """Sends answers with ETags. A trace never changes, so clients may cache its answers.

    Some answers also depend on other data, and their tags change if these data change. A verdict depends on the results of the
    slow-step watch. Verdicts, rooflines and comparisons depend on other traces of the run.
    """

    async def send_answer(self, body: Awaitable[Body]) -> None:
        await self.send_body(await self.unless_gone(body))

    def answer_format(self) -> AnswerFormat:
        return AnswerFormat(self.is_packed(), self.accepted_encoding())

    def answer_if_cached(self, question: str) -> bool:
        """Return whether the client has this answer; set status 304 then.

        The tag depends on the session and on tftracer's version.
        """
        text = f"{__version__} {self.answer_format().packed} {question}"
        tag = f'"{hashlib.sha256(text.encode()).hexdigest()[:32]}"'
        self.set_header("Cache-Control", "private, no-cache")
        self.set_header("Etag", tag)
        cached = tag in self.request.headers.get("If-None-Match", "").replace("W/", "").split(", ")
        if cached:
            self.set_status(304)
        return cached

    def compute_etag(self) -> str | None:
        return None  # set above, before the answer is computed


class AnalysisArguments(ApiHandler):
    """Reads the arguments of one analysis from the request."""

    analysis: Analysis

    def is_packed(self) -> bool:
        return self.analysis.packed or super().is_packed()

    def arguments_of_analysis(self, index: str) -> dict[str, Any]:
        return {name: self._argument(name, index) for name in self.analysis.parameters}

    def _argument(self, name: Parameter, index: str) -> Any:
        if name == "by":
            return self.choice_argument("by", self.analysis.groupings)
        if name == "of":
            return self.choice_argument("of", MEASURES)
        if name == "index":
            return self.number(index, "node")
        if name == "depth":
            return self._depth()
        return self.is_packed()  # "with_slack": slack is a column, and only MessagePack has columns

    def _depth(self) -> int:
        text = self.get_query_argument("depth", "1")
        if not (text.isascii() and text.isdigit() and len(text) <= ID_DIGITS):
            raise Refusal(400, "bad_query", f"depth must be a number, not {text[:50]!r}.")
        return min(max(int(text), 1), MAX_DEPTH)


class AnalysisHandler(AnalysisArguments, AnswerHandler):
    """Answers with one analysis of a trace."""

    def initialize(self, services: Services, analysis: Analysis) -> None:  # type: ignore[override]
        super().initialize(services)
        self.analysis = analysis

    async def get(self, trace: str, index: str = "") -> None:
        question = Question(self.analysis.name, self.arguments_of_analysis(index))
        key = await self.find_trace(trace)
        if self.analysis.needs_watch:
            question = await self.run_on_worker(self.add_watched, question, key)
        other_traces = await self.find_other_traces(key, question.name)
        tags = (other.tag for other in other_traces.get(question.name, ()))
        if not self.answer_if_cached(" ".join([key.tag, question.key, *tags])):
            await self.send_answer(self.ask(key, question, other_traces))

    async def ask(self, trace: TraceKey, question: Question, other_traces: OtherTraceKeys) -> Body:
        """Return the answer to a question. ``other_traces``: traces of the same run that the analysis needs."""
        answers = self.services.answers
        other_replies = (await other_answers(other_traces, answers)).get(question.name)
        if other_replies:
            question = Question(question.name, {**question.arguments, "other_traces": other_replies})
        return await answers.ask(trace, question, self.answer_format())

    def add_watched(self, question: Question, trace: TraceKey) -> Question:
        """Add the results of the slow-step watch, which may arrive after the trace and change the answer."""
        watched = self.services.source.trace_context(trace.id).watched
        return Question(question.name, {**question.arguments, "watched": watched})


class CompareHandler(AnswerHandler):
    """Compares two traces, with the help of the other traces of their runs."""

    async def get(self) -> None:
        by = self.choice_argument("by", GROUPINGS)
        first, second = [await self.find_trace(self.get_query_argument(name, "")) for name in ("a", "b")]
        source, answers = self.services.source, self.services.answers
        runs = await self.run_on_worker(lambda: other_run_traces(source, answers.key_of, first.id, second.id))
        if not self.answer_if_cached(f"{first.tag} {second.tag} {runs.tag} compare?by={by}"):
            await self.send_answer(self.compare(first, second, by, runs))

    async def compare(self, first: TraceKey, second: TraceKey, by: str, runs: OtherRunTraces) -> Body:
        answers = self.services.answers
        return await answers.compare(
            first, second, by, await other_totals(runs, (first, second), by, answers), self.answer_format()
        )


class RunOpsHandler(AnswerHandler):
    """Ops over the newest traces of one run. The engine decodes the traces and computes the table."""

    async def get(self, run: str) -> None:
        by, run_id = self.choice_argument("by", GROUPINGS), self.number(run, "run")
        source, answers = self.services.source, self.services.answers
        await self.services.rate_limit.wait_to_answer()
        traces = await self.run_on_worker(lambda: traces_to_read(source.run(run_id)["traces"], answers.key_of))
        if not self.answer_if_cached(f"{traces.tag} runs/{run_id}/ops?by={by}"):
            await self.send_answer(self.ask(traces, by))

    async def ask(self, traces: RunTraceKeys, by: str) -> Body:
        """Compute the table. It leaves out traces that cannot be read or were removed meanwhile, and says how many these are."""
        answers = self.services.answers
        question = Question("op_totals", {"by": by, "with_flops": True})
        bodies = await ask_each(traces.traces, question, answers)
        totals = [(key.id, traces.traces[key], body) for key, body in bodies]
        unreadable = traces.broken + len(traces.traces) - len(totals)
        return await answers.run_ops(RunTraces(totals, traces.older, unreadable), by, self.answer_format())


@dataclass(frozen=True)
class OtherRunTraces:
    """The newest other traces of the runs of ``a`` and ``b``; if both are of one run, all are in ``a``."""

    a: RunTraceKeys
    b: RunTraceKeys
    same_run: bool
    step_times_text: str  # sentences about the runs' step times; "" for one run

    @property
    def tag(self) -> str:
        """Return a text that changes whenever the comparison may change."""
        return f"{self.a.tag} {self.b.tag} {self.same_run} {self.step_times_text}"


def other_run_traces(source: SessionSource, key_of: Callable[[TraceRecord], TraceKey], first: int, second: int) -> OtherRunTraces:
    """Find the other traces of the runs of two traces.

    May be called from any thread. Takes the session's lock, and may read the disk. Raises UnknownError if a trace was removed.
    """
    runs = [source.run(source.trace_record(number)["run_id"]) for number in (first, second)]
    same_run = runs[0]["id"] == runs[1]["id"]
    a, b = (
        [record for record in run["traces"] if record["id"] not in (first, second) and measures_tracing(record["asked_by"])]
        for run in runs
    )
    sides = (a, []) if same_run else (a, b)
    limit = MAX_OF_ONE_RUN if same_run else MAX_TRACES
    read_a, read_b = (traces_to_read(side, key_of, limit, min_traces=MAX_TRACES) for side in sides)
    times = "" if same_run else step_times_in_words(*(source.step_times(run["id"]) for run in runs))
    return OtherRunTraces(read_a, read_b, same_run, times)


async def other_totals(runs: OtherRunTraces, compared: tuple[TraceKey, TraceKey], by: str, answers: AnswerCache) -> OtherTotals:
    """Return the other traces' totals, and when they and the ``compared`` traces were recorded.

    Traces that cannot be read or were removed meanwhile are left out; ``unreadable`` is their number.
    """
    question = Question("op_totals", {"by": by})
    a, b = [await ask_each(side.traces, question, answers) for side in (runs.a, runs.b)]
    unreadable = sum(side.broken + len(side.traces) for side in (runs.a, runs.b)) - len(a) - len(b)
    totals_a, totals_b = ([body for _, body in side] for side in (a, b))
    started = [[first.started_at, *(trace.started_at for trace, _ in side)] for first, side in zip(compared, (a, b))]
    older = runs.a.older + runs.b.older
    return OtherTotals(totals_a, totals_b, runs.same_run, older, unreadable, runs.step_times_text, *started)
