"""``Answers``: all analyses of one trace, for the server, the command line and the exports.

``Answers(raw, context)`` decodes the trace for the first answer, caches expensive results, and returns the messages of
contract/trace.py: plain dicts, lists, floats and ints, with ``Column`` where the contract has it. Thread-safe: a lock lets one
answer be computed at a time. No TensorFlow, no Tornado.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar

import numpy as np

from tftracer.contract import trace as messages
from tftracer.contract.basics import Finding
from tftracer.contract.layers import Layers
from tftracer.contract.roofline import Roof, Roofline
from tftracer.errors import UnknownError
from tftracer.trace import timeline_lanes
from tftracer.trace.analyses import (
    allocations,
    arithmetic,
    budget,
    communication,
    cost_graph,
    critical_path,
    dependencies,
    layer_of_each_op,
    layers,
    layers_by_graph,
    memory,
    node_details,
    ops,
    over_traces,
    roofline,
    scheduling,
    timeline_counters,
)
from tftracer.trace.analyses.critical_path import MAX_STEPS
from tftracer.trace.analyses.dependencies import Graph
from tftracer.trace.analyses.layers import MAX_LAYERS
from tftracer.trace.analyses.memory import MAX_TENSORS
from tftracer.trace.analyses.ops import MAX_ROWS as MAX_OPS
from tftracer.trace.analyses.ops import By
from tftracer.trace.analyses.profile_arithmetic import arithmetic_of_profile
from tftracer.trace.analyses.roofline import MAX_ROWS as MAX_ROOFLINE_ROWS
from tftracer.trace.analyses.roofline import By as RooflineBy
from tftracer.trace.arrays.columns import column
from tftracer.trace.arrays.types import Bool, Float64
from tftracer.trace.decode import formats, labels, outputs_and_memory
from tftracer.trace.decode.static_graph import StaticGraph
from tftracer.trace.model import Trace, TraceContext, Watched
from tftracer.trace.timeline_lanes import Layout
from tftracer.trace.verdict import verdict
from tftracer.trace.verdict.incomplete_trace import findings_of

#: Maximum number of nodes of a trace whose node details compute the slack and the critical path. In larger traces the details
#: show them only if another answer has already computed them.
MAX_NODES_FOR_SLACK = 100_000
#: The static graph is cached up to this many edges, about 9 MB.
KEPT_EDGES = 1 << 18
#: RunMetadata of at least this size is released after decoding, because most answers need only the columns.
RELEASE_BYTES = 32 << 20

T = TypeVar("T")


def _cached(compute: Callable[[Answers], T]) -> Callable[[Answers], T]:
    """Decorate a method of ``Answers`` so that its result is cached under its name."""
    return functools.wraps(compute)(lambda self: self._once(compute.__name__, lambda: compute(self)))


class Answers:
    """All analyses of one trace.

    ``raw``: serialized RunMetadata or XSpace, or a function that loads it, which may be called again. Or pass a decoded
    ``trace``. The first answer raises FormatError or TruncatedError for invalid bytes.
    """

    def __init__(
        self, raw: bytes | Callable[[], bytes] | None, context: TraceContext, *, trace: Trace | None = None, trace_id: int = 0
    ) -> None:
        if raw is None and trace is None:
            raise ValueError("Answers needs the raw bytes of a trace, or a decoded one")
        self.context = context
        self.trace_id = trace_id
        self._raw = raw
        self._lock = threading.RLock()
        self._computed: dict[str, Any] = {} if trace is None else {"trace": trace}

    def _once(self, key: str, compute: Callable[[], T]) -> T:
        """Return the result that is cached under ``key``; compute it if there is none."""
        with self._lock:
            if key not in self._computed:
                self._computed[key] = compute()
            value: T = self._computed[key]
            return value

    # ----------------------------------------------------------------------------------------- shared intermediate results

    @property
    @_cached
    def trace(self) -> Trace:
        if not callable(self._raw):
            return formats.decode(self._raw or b"", self.context.communication_ops)
        trace = formats.decode(self._raw(), self.context.communication_ops)
        if trace.source == "run_metadata" and trace.content.size >= RELEASE_BYTES:
            trace.content.release(self._raw)
        return trace

    @property
    def layout(self) -> Layout:
        return self._once("layout", lambda: timeline_lanes.lay_out(self.trace, self.context.device_pattern))

    @property
    def parentheses(self) -> labels.Parentheses:
        return self._once("parentheses", lambda: labels.split_parentheses(self.trace.labels))

    @property
    def graph(self) -> Graph:
        return self._once("graph", lambda: dependencies.dependencies(self.trace, self._static_graph()))

    def _static_graph(self) -> StaticGraph:
        """Return the static graph, which two answers need; a large one is read twice instead of cached."""
        with self._lock:
            static: StaticGraph = self._computed.get("static graph") or dependencies.static_graph_of(self.trace)
            if len(static.producer) <= KEPT_EDGES:
                self._computed["static graph"] = static
            return static

    @property
    def activities(self) -> budget.Activities:
        return self._once("activities", lambda: budget.activities(self.trace))

    @property
    def work(self) -> ops.Work:
        return self._once("work", lambda: ops.work_of(self.trace))

    @property
    @_cached
    def arithmetic(self) -> arithmetic.Arithmetic:
        """Floating-point operations and compulsory bytes of each node."""
        source = self.trace.details
        if source is not None:
            return arithmetic_of_profile(self.trace, source.calls(), source.graphs())
        return arithmetic.arithmetic(self.trace, self.outputs, self.graph)

    @property
    @_cached
    def layers_of_ops(self) -> layer_of_each_op.PlacedOps:
        """The layer of each op. The graph is read only if it may give a layer to ops whose names give none."""
        placed = layer_of_each_op.placed_ops(self.trace, self.work)
        if not layers_by_graph.may_be_placed(self.trace, self.work, placed).any():
            return placed
        return layers_by_graph.with_graph(self.trace, self.work, placed, self._static_graph())

    @property
    def edges(self) -> critical_path.Edges:
        return self._once("edges", lambda: critical_path.edges_of(self.trace, self.graph))

    @property
    def path(self) -> critical_path.Path:
        return self._once("path nodes", lambda: critical_path.path_of(self.trace, self.edges))

    @property
    @_cached
    def slack(self) -> Float64:
        """[n] The slack in ns; -1 if not known: for repeats, and for all nodes if the trace has no dependencies."""
        is_known = self.graph.source != "none"
        return critical_path.slack_of(self.trace, self.edges) if is_known else np.full(self.trace.n, -1.0)

    @property
    def outputs(self) -> outputs_and_memory.Outputs:
        return self._resources[0]

    @property
    def memory_stats(self) -> outputs_and_memory.MemoryStats:
        """The bytes that each node allocates besides its outputs."""
        return self._resources[1]

    @property
    @_cached
    def tensors(self) -> memory.StepTensors:
        """The tensors of the step: a profile's allocations if it recorded some, else the buffers of the outputs in the trace."""
        source = self.trace.details
        recorded = source.allocations() if source is not None else None
        if source is None or recorded is None or not len(recorded.time):
            return memory.output_buffers(self.trace, self.outputs, self.graph)
        return allocations.allocated_tensors(self.trace, recorded, source.origin)

    @property
    def curves(self) -> list[messages.MemoryCurve]:
        """Live bytes of each allocator over time, highest peak first."""
        with self._lock:
            return self.tensors.curves

    @property
    def _resources(self) -> tuple[outputs_and_memory.Outputs, outputs_and_memory.MemoryStats]:
        return self._once("resources", lambda: outputs_and_memory.decode_resources(self.trace))

    def findings(self) -> list[Finding]:
        return self._once("findings", lambda: findings_of(self.trace, self.context))

    @_cached
    def on_critical_path(self) -> Bool:
        """[n] whether each node is on the critical path."""
        marks = np.zeros(self.trace.n, bool)
        marks[self.path.node] = True
        return marks

    # ------------------------------------------------------------------------------------------------------ answers
    # Inside the class, `ops` means the method once it is defined. So defaults use imported constants (MAX_OPS), not ops.MAX_ROWS.

    def timeline(self) -> messages.Timeline:
        """Return the message from which the page draws the trace.

        ``critical`` is all 0 until another answer has computed the critical path, which needs the graph. Reading the graph would
        take most of the time until the page shows the timeline.
        """
        with self._lock:
            marks = self.on_critical_path() if "on_critical_path" in self._computed else np.zeros(self.trace.n, bool)
            return timeline_lanes.timeline(self.trace, self.layout, marks, self.context, self.findings(), self.trace_id)

    def verdict(self, watched: Watched | None = None, other_traces: Sequence[Mapping[str, Any]] = ()) -> messages.Verdict:
        """Return the verdict.

        ``watched``: fields of the context that may arrive after the trace, and replace the old ones; None: no change.
        ``other_traces``: ``op_totals("name")`` of the run's other traces: rules about rates need several traces.
        """
        with self._lock:
            if watched is not None and watched != self.context.watched:
                self.context = replace(self.context, **watched)
                self._computed.pop("verdict", None)
            if other_traces:
                totals = [over_traces.OpTotals(**each) for each in (self.op_totals("name"), *other_traces)]
                return self._verdict(over_traces.over_traces(totals))
            return self._once("verdict", self._verdict)

    def _verdict(self, ops_over_traces: over_traces.OpsOverTraces | None = None) -> messages.Verdict:
        inputs = self.trace, self.context, self.findings(), self.activities, self.work
        return verdict.verdict(*inputs, lambda: self.arithmetic, ops_over_traces)

    def ops(self, by: By = "type", limit: int = MAX_OPS) -> messages.OpStatistics:
        ops.check_grouping(by)
        inputs = self.trace, by, self.findings(), self.work, limit
        return self._once(f"ops {by} {limit}", lambda: ops.op_statistics(*inputs, self.arithmetic))

    def layers(self, of: Literal["time", "memory"] = "time", limit: int = MAX_LAYERS) -> Layers:
        """Return the layers. ``of``: the measured quantity. Callers pass it by keyword, with the name that the URL uses."""

        def compute() -> Layers:
            inputs = self.trace, self.work, self.layers_of_ops
            if of == "time":
                return layers.layers_of_time(*inputs, self.findings(), limit)
            return layers.layers_of_memory(*inputs, self.tensors.at_peak(), self.findings(), limit)

        if of not in ("time", "memory"):
            raise UnknownError(f"Layers are measured by time or memory, not by {of!r}.")
        return self._once(f"layers {of} {limit}", compute)

    def op_totals(self, by: By = "type", with_flops: bool = False) -> dict[str, Any]:
        """Return the fields of ``over_traces.OpTotals``, for analyses over several traces of a run.

        Without FLOPs neither the graph nor the outputs are read.
        """
        return over_traces.op_totals(self.trace, by, self.work, self.arithmetic if with_flops else None)

    def budget(self) -> messages.Budget:
        return self._once("budget", lambda: budget.budget(self.trace, self.findings(), self.activities))

    def critical_path(self, with_slack: bool = False, limit: int = MAX_STEPS) -> messages.CriticalPath:
        def compute() -> messages.CriticalPath:
            return critical_path.critical_path(self.trace, self.graph, self.findings(), self.path, limit)

        with self._lock:
            self.on_critical_path()
            answer = self._once(f"path {limit}", compute)
            slack = column(self.slack.astype(np.float32)) if with_slack else None
            return {**answer, "slack_ns": slack}

    def memory(self, limit: int = MAX_TENSORS) -> messages.Memory:
        """Return the memory use of each allocator and its largest tensors. ``limit``: maximum number of tensors."""
        return self._once(f"memory {limit}", lambda: memory.memory(self.tensors, self.memory_stats, self.findings(), limit))

    def communication(self) -> messages.Communication:
        return self._once(
            "communication", lambda: communication.communication(self.trace, self.findings(), self.activities, self.work)
        )

    def counters(self) -> messages.Counters:
        """Return the counters. They are not cached: they take 20 MB for 2^20 nodes, and only their inputs are cached."""
        with self._lock:
            return timeline_counters.counters(self.trace, self.outputs, self.tensors.held())

    def roofline(
        self, by: RooflineBy = "name", limit: int = MAX_ROOFLINE_ROWS, other_traces: Sequence[Mapping[str, list[Roof]]] = ()
    ) -> Roofline:
        """Return the roofline with the ``limit`` rows that took most time.

        ``other_traces``: ``best_rates()`` of the run's other traces.
        """
        if by not in ("name", "type"):
            raise UnknownError(f"The ops of a roofline are grouped by name or type, not by {by!r}.")

        def compute() -> Roofline:
            inputs = self.trace, self.work, self.arithmetic, self.context, self.findings()
            return roofline.roofline(*inputs, by, limit, [other["rates"] for other in other_traces])

        with self._lock:
            return compute() if other_traces else self._once(f"roofline {by} {limit}", compute)

    def best_rates(self) -> dict[str, list[Roof]]:
        """Return ``rates``: the highest rates of this trace's ops, for the roofline of other traces of the run."""
        with self._lock:
            return {"rates": roofline.best_rates_of(self.trace, self.work, self.arithmetic)}

    def scheduling(self) -> messages.Scheduling:
        return self._once("scheduling", lambda: scheduling.scheduling(self.trace, self.findings()))

    def cost(self) -> messages.CostGraph:
        return self._once("cost", lambda: cost_graph.cost_graph(self.trace, self.findings()))

    def node(self, index: int) -> messages.NodeDetail:
        """Return the details of a node. Raises UnknownError if the trace has no such node."""
        with self._lock:
            self._check(index)
            small = self.trace.n <= MAX_NODES_FOR_SLACK
            critical = bool(self.on_critical_path()[index]) if small or "on_critical_path" in self._computed else False
            slack = float(self.slack[index]) if small or "slack" in self._computed else -1.0
            slack_ns = slack if slack >= 0 else None
            return node_details.node_detail(
                self.trace, index, self.graph, critical=critical, slack_ns=slack_ns, arithmetic=self.arithmetic
            )

    def neighbourhood(self, index: int, depth: int = 2, limit: int = 200) -> messages.Neighbourhood:
        with self._lock:
            self._check(index)
            return node_details.neighbourhood(self.trace, self.graph, index, depth, limit)

    def _check(self, index: int) -> None:
        if not 0 <= index < self.trace.n:
            raise UnknownError(f"The trace has no node {index}: its nodes are 0 to {self.trace.n - 1}.")
