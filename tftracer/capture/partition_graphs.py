"""The graphs that compiled functions run as: TensorFlow optimizes, places and partitions a function in its first call, and hands
the result out only while it is told to collect graphs. So it is told so around that call, and not for longer.

A first call builds such a graph, which takes from 5 ms to seconds; collecting it adds a few percent to that. All later calls
cost a look into a dict. The script's own use of the collection (``tf.summary.trace_on``, ``tf.summary.trace_export``) wins.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import zstandard

#: Constants of a function's graph in bytes; TensorFlow copies them several times while it collects the graph.
MAX_CONSTANTS = 16 << 20
#: Graphs that wait for the writer; functions whose graphs are kept, and their bytes, compressed. The others have definitions.
MAX_WAITING, MAX_KEPT, MAX_KEPT_BYTES = 50, 1000, 64 << 20
#: A graph is a function's if it has so many of its ops; those that another thread instantiated meanwhile do not.
SHARE = 0.9
#: Methods of TensorFlow's context -> whether the script collects graphs from then on.
_SCRIPTS_OWN = {
    "enable_graph_collection": True,
    "disable_graph_collection": False,
    "enable_run_metadata": True,
    "disable_run_metadata": False,
}


class _Collected(NamedTuple):
    function: weakref.ref[Any]  # a ConcreteFunction
    metadata: Any  # RunMetadata


class PartitionGraphs:
    """Of the functions that were first called since ``watch``. ``is_off``: whether the tracer is."""

    def __init__(self, is_off: Callable[[], bool]) -> None:
        self.called: dict[int, weakref.ref[Any]] = {}  # id -> each ConcreteFunction that was called
        self._is_off = is_off
        self._is_eager: Callable[[], bool] = lambda: False
        self._context: Any = None  # TensorFlow's module
        self._enable: Callable[[Any], None] = lambda context: None
        self._disable = self._enable
        self._collecting = threading.Lock()
        self._script_collects = False
        self._waiting: deque[_Collected] = deque()
        self._settling = threading.Lock()
        self._kept: dict[int, bytes] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def watch(self, wrap: Callable[[type, str, Callable[..., Any]], None], is_eager: Callable[[], bool]) -> None:
        """``wrap``: puts a wrapper in the place of a class's method. Never raises: without it there are no graphs."""
        with contextlib.suppress(Exception):
            self._is_eager, self._context = is_eager, importlib.import_module("tensorflow.python.eager.context")
            owner = self._context.Context
            self._enable, self._disable = owner.enable_graph_collection, owner.disable_graph_collection
            self._script_collects = _is_tracing_summaries()
            for name, collects in _SCRIPTS_OWN.items():
                wrap(owner, name, self._noting(getattr(owner, name), collects))

    def _noting(self, original: Callable[..., Any], collects: bool) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self._script_collects = collects
            return original(*arguments, **named)

        return call

    # ---------------------------------------------------------------------------------------------- training threads

    def collected(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """``ConcreteFunction._call_flat``, with the graph collected in each function's first call."""
        called = self.called

        def call_flat(concrete: Any, *arguments: Any, **named: Any) -> Any:
            if id(concrete) in called or _quietly(self._begin, concrete) is not True:
                return original(concrete, *arguments, **named)
            metadata = None
            try:
                result = original(concrete, *arguments, **named)
                metadata = _quietly(self._export)
            finally:
                _quietly(self._end, concrete, metadata)
            return result

        return call_flat

    def _begin(self, concrete: Any) -> bool:
        """Whether this function's graph is collected from now on; ``_end`` ends that."""
        if not self._is_eager() or self._is_off():
            return False
        number = id(concrete)
        self.called[number] = weakref.ref(concrete, functools.partial(self._forget, number))
        if self._script_collects or len(self._waiting) >= MAX_WAITING or len(self._kept) >= MAX_KEPT:
            return False
        if constant_bytes(concrete.graph) > MAX_CONSTANTS or not self._collecting.acquire(blocking=False):
            return False
        try:
            self._enable(self._context.context())
        except BaseException:
            self._collecting.release()
            raise
        return True

    def _export(self) -> Any:
        """What TensorFlow collected; None where the script collects by now: it is the script's."""
        return None if self._script_collects else self._context.context().export_run_metadata()

    def _end(self, concrete: Any, metadata: Any) -> None:
        try:
            if not self._script_collects:
                self._disable(self._context.context())
        finally:
            self._collecting.release()
        if metadata is not None:
            self._waiting.append(_Collected(weakref.ref(concrete), metadata))

    def _forget(self, number: int, _: Any) -> None:
        """The function is gone. On any thread."""
        self.called.pop(number, None)
        self._kept.pop(number, None)

    # --------------------------------------------------------------------------------------------- the tracer's threads

    def settle(self) -> None:
        """Keep of what was collected the functions' own partition graphs, compressed."""
        while self._waiting:
            with self._settling, contextlib.suppress(Exception):  # IndexError: another thread was first
                collected = self._waiting.popleft()
                concrete = collected.function()
                if concrete is not None:
                    self._keep(concrete, collected.metadata)

    def _keep(self, concrete: Any, metadata: Any) -> None:
        graphs = _graphs_of(concrete, metadata)
        if not graphs:
            return
        del metadata.function_graphs[:]
        metadata.partition_graphs.extend(graphs)
        content = zstandard.ZstdCompressor().compress(metadata.SerializeToString())
        if sum(map(len, list(self._kept.values()))) + len(content) <= MAX_KEPT_BYTES and id(concrete) in self.called:
            self._kept[id(concrete)] = content

    def of(self, concrete: Any) -> bytes:
        """The function's serialized partition graphs, as the ``partition_graphs`` of a RunMetadata; b"" where there are none."""
        self.settle()
        with self._settling:  # another thread may be at it
            content = self._kept.get(id(concrete))
        return zstandard.ZstdDecompressor().decompress(content) if content else b""


def constant_bytes(graph: Any) -> int:
    """What the constants of a function's graph take, those of all functions that it calls included."""
    functions = getattr(graph, "_functions", {}).values()
    graphs = [graph, *(inner for function in functions if (inner := getattr(function, "graph", None)) is not None)]
    tensors = [op.outputs[0] for one in graphs for op in one.get_operations() if op.type == "Const"]
    return sum((tensor.shape.num_elements() or 0) * tensor.dtype.size for tensor in tensors)


def _graphs_of(concrete: Any, metadata: Any) -> list[Any]:
    """The partition graphs of a function among those of all functions that were instantiated meanwhile."""
    names = {op.name for op in concrete.graph.get_operations() if op.type != "Placeholder"}
    for function in metadata.function_graphs:
        instantiated = {node.name for node in function.pre_optimization_graph.node}
        if len(names & instantiated) >= SHARE * len(names):
            return list(function.partition_graphs)
    return []


def _is_tracing_summaries() -> bool:
    """Whether ``tf.summary.trace_on`` collects graphs already."""
    summaries: Any = importlib.import_module("tensorflow.python.ops.summary_ops_v2")
    return bool(getattr(getattr(summaries, "_current_trace_context", None), "graph", False))


def _quietly(action: Callable[..., Any], *arguments: Any) -> Any:
    """What ``action`` returns; None if it fails: then there is no graph, and the function runs as without it."""
    try:
        return action(*arguments)
    except Exception:
        return None
