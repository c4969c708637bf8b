"""The analyses of a trace: one entry each, from which the routes, the engine and the page's types are made."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tftracer.contract import layers, roofline, trace

#: by: "type", "name" or "scope"; of: "time" or "memory"; at_ns: a time in the step; index: of a node;
#: depth: edges from that node.
Parameter = Literal["by", "of", "at_ns", "index", "depth"]

#: What ops are grouped by, and what they are in the roofline; the first where nothing is asked for.
GROUPINGS = ("type", "name", "scope")
ROOFLINE_GROUPINGS = ("name", "type")


class Analysis(NamedTuple):
    """A method of ``trace.answers.Answers``, and where its answer is found."""

    name: str  # of the method
    path: str  # under /api/traces/ID/; {index} stands for a node's number
    message: type  # of the answer
    parameters: tuple[Parameter, ...] = ()
    packed: bool = False  # columns within: msgpack whatever the client accepts


ANALYSES = (
    Analysis("timeline", "timeline", trace.Timeline, packed=True),
    Analysis("counters", "counters", trace.Counters, packed=True),
    Analysis("verdict", "verdict", trace.Verdict),
    Analysis("layers", "layers", layers.Layers, ("of",)),
    Analysis("budget", "breakdown", trace.Budget),
    Analysis("critical_path", "critical-path", trace.CriticalPath),
    Analysis("communication", "communication", trace.Communication),
    Analysis("scheduling", "scheduling", trace.Scheduling),
    Analysis("cost", "cost", trace.CostGraph),
    Analysis("ops", "ops", trace.OpStatistics, ("by",)),
    Analysis("roofline", "roofline", roofline.Roofline, ("by",)),
    Analysis("memory", "memory", trace.Memory, ("at_ns",)),
    Analysis("node", "nodes/{index}", trace.NodeDetail, ("index",)),
    Analysis("neighbourhood", "nodes/{index}/graph", trace.Neighbourhood, ("index", "depth")),
)
