"""Collects the graphs that compiled functions execute. TensorFlow optimizes, places and partitions a function in its first call,
and hands out the partition graphs only while graph collection is on. So collection is switched on for the first call only.

Building the graphs in the first call takes from 5 ms to seconds; collecting them adds a few percent. Each later call costs one
look-up in a dict. While the script itself collects graphs (``tf.summary.trace_on``), the tracer collects none.

The user may request the graph of a function that was called before. Then its next call gets options that differ only in a name
from those of other calls, so TensorFlow builds the graph again. Later calls have the original options and graph.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
import uuid
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import zstandard

from tftracer.capture.functions.function_definitions import constant_bytes, first_stateful_op, function_library
from tftracer.capture.tracebacks import hide_in_tracebacks
from tftracer.capture.traces.requests import TraceRequests
from tftracer.errors import UnsupportedError
from tftracer.run_handle import RunHandle

#: Maximum size in bytes of the constants in a collected graph, because TensorFlow copies them several times.
MAX_CONSTANTS = 16 << 20
#: Maximum number of collected graphs that wait to be stored, of kept graphs, and of compressed bytes of all kept graphs. For
#: further functions only the definitions are known.
MAX_WAITING, MAX_KEPT, MAX_KEPT_BYTES = 50, 1000, 64 << 20
#: A collected graph counts as the graph of a function if it has at least this share of the function's ops. The limit is
#: needed because TensorFlow also collects the graphs of functions that other threads call.
MIN_SHARE_OF_OPS = 0.9
#: Methods of TensorFlow's context -> whether the script collects graphs from then on.
_SWITCHES = {
    "enable_graph_collection": True,
    "disable_graph_collection": False,
    "enable_run_metadata": True,
    "disable_run_metadata": False,
}


class _CollectedGraph(NamedTuple):
    function: weakref.ref[Any]  # a ConcreteFunction
    metadata: Any  # RunMetadata
    requested_for: RunHandle | None  # None: collected in the function's first call


class PartitionGraphs:
    """The graphs of functions whose first call came after ``watch``."""

    def __init__(self, requests: TraceRequests) -> None:
        #: Id of a ConcreteFunction -> the function, for all that were called, except those whose next call collects their graph.
        self.called_functions: dict[int, weakref.ref[Any]] = {}
        self._trace_requests = requests  # only its ``off`` is read: whether the tracer is switched off
        self._is_eager: Callable[[], bool] = lambda: False
        self._context: Any = None  # TensorFlow's module
        self._enable: Callable[[Any], None] = lambda context: None
        self._disable = self._enable
        self._collecting = threading.Lock()  # held while the graph of a function is collected
        self._script_collects = False  # whether the script itself collects graphs
        self._requested: dict[int, RunHandle] = {}  # id of a ConcreteFunction -> the run whose graph is requested
        self._waiting: deque[_CollectedGraph] = deque()
        self._storing = threading.Lock()
        self._kept: dict[int, bytes] = {}  # id of a ConcreteFunction -> its graphs, a compressed RunMetadata

    def __len__(self) -> int:
        return len(self._kept)

    def watch(self, wrap: Callable[[type, str, Callable[..., Any]], None], is_eager: Callable[[], bool]) -> None:
        """Start collecting. If that fails, no graphs are collected, and nothing is raised.

        ``wrap``: replaces a class's method by a wrapper.
        """
        with contextlib.suppress(Exception):
            self._is_eager, self._context = is_eager, importlib.import_module("tensorflow.python.eager.context")
            owner = self._context.Context
            self._enable, self._disable = owner.enable_graph_collection, owner.disable_graph_collection
            self._script_collects = _is_tracing_summaries()
            for name, collects in _SWITCHES.items():
                wrap(owner, name, self._wrap_switch(getattr(owner, name), collects))

    def _wrap_switch(self, original: Callable[..., Any], collects: bool) -> Callable[..., Any]:
        @hide_in_tracebacks
        def call(*arguments: Any, **named: Any) -> Any:
            self._script_collects = collects
            return original(*arguments, **named)

        return call

    # ---------------------------------------------------------------------------------------------- training threads

    def wrap_call_flat(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap ``ConcreteFunction._call_flat``, to collect the graph in each function's first call."""
        called = self.called_functions

        @hide_in_tracebacks
        def call_flat(concrete: Any, *arguments: Any, **named: Any) -> Any:
            if id(concrete) in called or _try_action(self._begin, concrete) is not True:
                return original(concrete, *arguments, **named)
            metadata, options = None, _try_action(self._force_rebuild, concrete)
            try:
                result = original(concrete, *arguments, **named)
                metadata = _try_action(self._export)
            finally:
                _try_action(self._restore_options, options)
                _try_action(self._end, concrete, metadata)
            return result

        return call_flat

    def _begin(self, concrete: Any) -> bool:
        """Start collecting this function's graph if possible, and return whether it started. ``_end`` stops it."""
        if not self._is_eager() or self._trace_requests.off:
            return False
        number = id(concrete)
        self.called_functions[number] = weakref.ref(concrete, functools.partial(self._forget, number))
        begins = False
        try:
            begins = self._begin_collecting(concrete, self._requested.get(number))
        finally:
            if not begins:
                self._remove_request(number)
        return begins

    def _begin_collecting(self, concrete: Any, handle: RunHandle | None) -> bool:
        if handle is not None and not handle.graph_requested:  # the user cancelled the request
            return False
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

    def _force_rebuild(self, concrete: Any) -> Any:
        """Make TensorFlow build the graphs of this thread's calls again, until ``_restore_options``.

        Return the original options for ``_restore_options``. If this function's graph was not requested, change nothing and
        return None.
        """
        if id(concrete) not in self._requested:
            return None
        context = self._context.context()
        options = context.function_call_options
        config = importlib.import_module("tensorflow").compat.v1.ConfigProto()
        config.ParseFromString(options.config_proto_serialized)
        config.experimental.session_metadata.name = f"tftracer {uuid.uuid4().hex}"
        context.function_call_options = type(options)(options.executor_type, config)
        return options

    def _restore_options(self, options: Any) -> None:
        context = self._context.context()
        if isinstance(options, type(context.function_call_options)):
            context.function_call_options = options

    def _export(self) -> Any:
        """Return the RunMetadata that TensorFlow collected; None if the script itself collects graphs by now."""
        return None if self._script_collects else self._context.context().export_run_metadata()

    def _end(self, concrete: Any, metadata: Any) -> None:
        try:
            if not self._script_collects:
                self._disable(self._context.context())
        finally:
            self._collecting.release()
            handle = self._remove_request(id(concrete))
        if metadata is not None:
            self._waiting.append(_CollectedGraph(weakref.ref(concrete), metadata, handle))

    def _remove_request(self, number: int) -> RunHandle | None:
        """Remove the request for this function's graph and return the requested run; None if there was no request."""
        handle = self._requested.pop(number, None)
        if handle is not None:
            handle.graph_requested = False
        return handle

    def _forget(self, number: int, _: Any) -> None:
        """Forget a function that was deleted. Runs on any thread."""
        self._remove_request(number)
        self.called_functions.pop(number, None)
        self._kept.pop(number, None)

    # --------------------------------------------------------------------------------------------- the tracer's threads

    def request(self, concrete: Any, handle: RunHandle) -> None:
        """Collect the graph of a function that was called before, in its next call.

        ``handle.graph_requested`` is True until then.

        Raises UnsupportedError if building the graph again could change the training, or would take too much memory.
        """
        self.store_collected()
        number = id(concrete)
        if number in self._kept or number not in self.called_functions:
            return  # the graph is kept or requested already, or the next call is the function's first call
        if constant_bytes(concrete.graph) > MAX_CONSTANTS:
            raise UnsupportedError(
                f"The graph of this function has constants of more than {MAX_CONSTANTS >> 20} MB; it is not copied."
            )
        stateful_op = first_stateful_op(function_library(concrete))
        if stateful_op:
            raise UnsupportedError(
                f"{stateful_op} may keep a state of its own, such as a sequence of random numbers. It would begin again if "
                "TensorFlow built the function's graph again. Start the script with tftracer run: then the graph is collected in "
                "the first call."
            )
        self._requested[number] = handle
        handle.graph_requested = True
        self.called_functions.pop(number, None)

    def has(self, concrete: Any) -> bool:
        """Return whether the function's graph is kept. Collected graphs count only after ``store_collected``."""
        return id(concrete) in self._kept

    def store_collected(self) -> None:
        """Find each function's partition graphs in the collected RunMetadata, and keep them compressed."""
        while self._waiting:
            with self._storing, contextlib.suppress(Exception):  # IndexError: another thread took the last one
                collected = self._waiting.popleft()
                concrete = collected.function()
                if concrete is not None:
                    self._keep(concrete, collected.metadata)
                    if collected.requested_for is not None and id(concrete) in self._kept:
                        collected.requested_for.graph_on_request = False

    def _keep(self, concrete: Any, metadata: Any) -> None:
        graphs = _graphs_of(concrete, metadata)
        if not graphs:
            return
        del metadata.function_graphs[:]
        metadata.partition_graphs.extend(graphs)
        content = zstandard.ZstdCompressor().compress(metadata.SerializeToString())
        if sum(map(len, list(self._kept.values()))) + len(content) <= MAX_KEPT_BYTES and id(concrete) in self.called_functions:
            self._kept[id(concrete)] = content

    def of(self, concrete: Any) -> bytes:
        """Return the function's partition graphs as a serialized RunMetadata; b"" if there are none."""
        self.store_collected()
        with self._storing:  # another thread may be adding it
            content = self._kept.get(id(concrete))
        return zstandard.ZstdDecompressor().decompress(content) if content else b""


def _graphs_of(concrete: Any, metadata: Any) -> list[Any]:
    """Return a function's partition graphs. ``metadata`` also has those of other functions that were built during the call.

    If an eager op ends on another thread during the call, TensorFlow splits the function's data into two entries: the first has
    the graph before optimization, a later entry has only the partition graphs.
    """
    names = {op.name for op in concrete.graph.get_operations() if op.type != "Placeholder"}
    is_found = False
    for function in metadata.function_graphs:
        if function.pre_optimization_graph.node:
            instantiated = {node.name for node in function.pre_optimization_graph.node}
            is_found = len(names & instantiated) >= MIN_SHARE_OF_OPS * len(names)
        graphs = list(function.partition_graphs)
        if is_found and graphs and any(node.name in names for graph in graphs for node in graph.node):
            return graphs
    return []


def _is_tracing_summaries() -> bool:
    """Return whether ``tf.summary.trace_on`` collects graphs already."""
    summaries: Any = importlib.import_module("tensorflow.python.ops.summary_ops_v2")
    return bool(getattr(getattr(summaries, "_current_trace_context", None), "graph", False))


def _try_action(action: Callable[..., Any], *arguments: Any) -> Any:
    """Return what ``action`` returns; None if it raises: then there is no graph, and the function is executed as without the
    tracer."""
    try:
        return action(*arguments)
    except Exception:
        return None
