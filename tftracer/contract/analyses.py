"""The table of a trace's analyses. Routes, engine, job, standalone page and the page's types are derived from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from tftracer.contract import layers, roofline, trace

#: by: how ops are grouped; of: "time" or "memory"; index: number of a node; depth: maximum number of edges from that node;
#: with_slack: whether to add a column with each node's slack, for clients that accept msgpack.
Parameter = Literal["by", "of", "index", "depth", "with_slack"]

#: The groupings of ops, in general and in the roofline. The first is the default.
GROUPINGS = ("type", "name", "scope")
ROOFLINE_GROUPINGS = ("name", "type")
MEASURES = ("time", "memory")

#: Minimum number of traces that are needed to know the usual time or rate of an op.
MIN_TRACES = 4


class OtherTracesNeeded(NamedTuple):
    """What an analysis needs from other traces of the run: a method's answers for ``min_traces`` to ``max_traces`` of them."""

    method: str  # a method of ``Answers``
    arguments: Mapping[str, Any]
    min_traces: int
    max_traces: int


class Analysis(NamedTuple):
    """A method of ``trace.answers.Answers``, and the path of its answer."""

    name: str  # name of the method
    path: str  # path under /api/traces/ID/; {index} stands for a node's number
    message: type  # type of the answer
    parameters: tuple[Parameter, ...] = ()
    packed: bool = False  # whether it has columns; then it is always sent as msgpack
    of_job: bool = False  # whether it is also available for a job's merged trace, under /api/job/traces/ID/
    groupings: tuple[str, ...] = GROUPINGS  # the values of ``by``
    needs_watch: bool = False  # whether it uses results of the slow-step watch, which may arrive after the trace
    other_traces: OtherTracesNeeded | None = None  # what it needs from other traces: the method's argument ``other_traces``
    standalone_rows: int = 0  # number of rows in a standalone page (the method's argument ``limit``); 0: all

    def choices(self) -> Iterator[dict[str, str]]:
        """Yield the arguments of each answer that a standalone page contains."""
        values = {"by": self.groupings, "of": MEASURES}
        names = [name for name in self.parameters if name in values]
        for combination in product(*(values[name] for name in names)):
            yield dict(zip(names, combination))


_OP_TIMES = OtherTracesNeeded("op_totals", {"by": "name"}, 1, MIN_TRACES - 1)
_BEST_RATES = OtherTracesNeeded("best_rates", {}, 1, 7)

ANALYSES = (
    Analysis("timeline", "timeline", trace.Timeline, packed=True, of_job=True),
    Analysis("counters", "counters", trace.Counters, packed=True, of_job=True),
    Analysis("verdict", "verdict", trace.Verdict, of_job=True, needs_watch=True, other_traces=_OP_TIMES),
    Analysis("layers", "layers", layers.Layers, ("of",), standalone_rows=500),
    Analysis("budget", "breakdown", trace.Budget, of_job=True),
    Analysis("critical_path", "critical-path", trace.CriticalPath, ("with_slack",), of_job=True, standalone_rows=2000),
    Analysis("communication", "communication", trace.Communication, of_job=True),
    Analysis("scheduling", "scheduling", trace.Scheduling, of_job=True),
    Analysis("cost", "cost", trace.CostGraph),
    Analysis("ops", "ops", trace.OpStatistics, ("by",), of_job=True, standalone_rows=500),
    Analysis(
        *("roofline", "roofline", roofline.Roofline, ("by",)),
        groupings=ROOFLINE_GROUPINGS,
        other_traces=_BEST_RATES,
        standalone_rows=150,
    ),
    Analysis("memory", "memory", trace.Memory, standalone_rows=500),
    Analysis("node", "nodes/{index}", trace.NodeDetail, ("index",), of_job=True),
    Analysis("neighbourhood", "nodes/{index}/graph", trace.Neighbourhood, ("index", "depth")),
)

#: Analysis -> the other traces that it needs.
OTHER_TRACES_NEEDED = {analysis.name: analysis.other_traces for analysis in ANALYSES if analysis.other_traces is not None}

#: Analysis -> the answers of the other traces that it needs.
OtherAnswers = Mapping[str, Sequence[Mapping[str, Any]]]
NO_OTHER_ANSWERS: OtherAnswers = {}
