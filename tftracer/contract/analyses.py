"""The analyses of a trace: one entry each. Routes, engine, job, standalone page and the page's types follow it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple

from tftracer.contract import layers, roofline, trace

#: by: what ops are grouped by; of: "time" or "memory"; index: of a node; depth: edges from that node;
#: with_slack: a column with the slack of each node, for clients that take msgpack.
Parameter = Literal["by", "of", "index", "depth", "with_slack"]

#: What ops are grouped by, and what they are in the roofline; the first where the client does not say.
GROUPINGS = ("type", "name", "scope")
ROOFLINE_GROUPINGS = ("name", "type")
MEASURES = ("time", "memory")

#: With fewer traces nothing is claimed of an op's usual time or rate.
LEAST_TRACES = 4


class OtherTracesNeeded(NamedTuple):
    """What an analysis needs of other traces of the run: answers of a method of ``Answers``, of ``least`` to ``most``."""

    method: str
    arguments: Mapping[str, Any]
    least: int
    most: int


class Analysis(NamedTuple):
    """A method of ``trace.answers.Answers``, and where its answer is found."""

    name: str  # of the method
    path: str  # under /api/traces/ID/; {index} stands for a node's number
    message: type  # of the answer
    parameters: tuple[Parameter, ...] = ()
    packed: bool = False  # columns within: msgpack whatever the client accepts
    of_job: bool = False  # the merged trace of a job has it, too, under /api/job/traces/ID/
    groupings: tuple[str, ...] = GROUPINGS  # the values of ``by``
    needs_watch: bool = False  # what the watch over slow steps knows, which may come after the trace
    others: OtherTracesNeeded | None = None  # given to the method as its argument ``others``
    standalone_rows: int = 0  # a standalone page has so many rows of it (the method's argument ``most``); 0: all

    def choices(self) -> Iterator[dict[str, str]]:
        """The arguments of each answer that a standalone page has."""
        values = {"by": self.groupings, "of": MEASURES}
        names = [name for name in self.parameters if name in values]
        for combination in product(*(values[name] for name in names)):
            yield dict(zip(names, combination))


_OP_TIMES = OtherTracesNeeded("op_totals", {"by": "name"}, 1, LEAST_TRACES - 1)
_BEST_RATES = OtherTracesNeeded("best_rates", {}, 1, 7)

ANALYSES = (
    Analysis("timeline", "timeline", trace.Timeline, packed=True, of_job=True),
    Analysis("counters", "counters", trace.Counters, packed=True, of_job=True),
    Analysis("verdict", "verdict", trace.Verdict, of_job=True, needs_watch=True, others=_OP_TIMES),
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
        others=_BEST_RATES,
        standalone_rows=150,
    ),
    Analysis("memory", "memory", trace.Memory, standalone_rows=500),
    Analysis("node", "nodes/{index}", trace.NodeDetail, ("index",), of_job=True),
    Analysis("neighbourhood", "nodes/{index}/graph", trace.Neighbourhood, ("index", "depth")),
)

#: By the analysis that needs them.
OTHERS_NEEDED = {analysis.name: analysis.others for analysis in ANALYSES if analysis.others is not None}

#: The answers of the other traces, by the analysis that needs them.
OtherAnswers = Mapping[str, Sequence[Mapping[str, Any]]]
NO_OTHERS: OtherAnswers = {}
