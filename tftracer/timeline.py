"""``Timeline``: one traced ``session.run`` without a server.

    with tftracer.Timeline() as timeline:
        session.run(train_op, **timeline.kwargs)
    timeline.visualize("step.html")

It has the methods that ``Timeline`` has in tensorflow-tracer and in tfvis, with the same results; all times are seconds. Only
the ``with`` statement imports TensorFlow: a timeline that was loaded from a file does not need it. Use a timeline only on the
thread that created it.
"""

from __future__ import annotations

import dataclasses
import gzip
import os
import pathlib
import re
import time
from types import TracebackType
from typing import Any

import numpy as np

from tftracer import arguments
from tftracer.arguments import Path
from tftracer.errors import FormatError, MissingTensorFlowError, PatternError, StorageError, UnsupportedError
from tftracer.export import chrome, html
from tftracer.importers import legacy_pickles, open_any
from tftracer.importers.imported import Imported
from tftracer.session import one_trace
from tftracer.storage.plain_files import open_plain
from tftracer.storage.whole_file import replacing
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.intervals import Cover
from tftracer.trace.arrays.linear_regex import Pattern
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.arrays.types import Bool, Int64
from tftracer.trace.decode.wire import message_field
from tftracer.trace.model import UNKNOWN_TIME, Trace, TraceContext

#: The default communication op: a tensor received from another process.
RECEIVE = "RecvTensor"
ALLREDUCE = " = HorovodAllreduce("


class Timeline:
    """Traces a session run and shows where its time went.

    Args:
        run_metadata: a ``RunMetadata`` that TensorFlow filled, or its serialized bytes. None: the ``with`` statement creates one,
            which is filled through ``kwargs``.
        comm_op_name: the node name that counts as communication (default ``RecvTensor``).
        horovod: True counts only ``HorovodAllreduce`` as communication, False only ``comm_op_name``, None (the default) both.

    Other keyword arguments are ignored with a warning, as tensorflow-tracer ignored them.
    """

    def __init__(
        self, run_metadata: Any = None, comm_op_name: str | None = None, horovod: bool | None = None, **unknown: Any
    ) -> None:
        arguments.ignore("Timeline", unknown)
        self._run_metadata = run_metadata
        self._options: Any = None
        self._comm_op_name = comm_op_name
        self._horovod = horovod
        self._started = 0.0
        self._elapsed = 0.0
        self._answers: Answers | None = None
        self._context = TraceContext(communication_ops=re.escape(comm_op_name) if comm_op_name else "", title="session.run")

    def __enter__(self) -> Timeline:
        try:
            from tensorflow.compat import v1
        except ImportError as error:
            raise MissingTensorFlowError(
                "Timeline() as a context manager traces a session.run, and TensorFlow is not installed here. "
                "To look at a trace that was saved elsewhere, use Timeline.load(path)"
            ) from error
        self._run_metadata = v1.RunMetadata()
        self._options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        self._answers = None
        self._started = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._elapsed = time.perf_counter() - self._started
        self._context.step_s = self._elapsed
        self._context.trace_level = "FULL_TRACE"
        self._context.partition_graphs_asked = True

    @property
    def kwargs(self) -> dict[str, Any]:
        """``options`` and ``run_metadata`` for ``session.run``: ``session.run(fetches, **timeline.kwargs)``."""
        if self._run_metadata is None:
            raise UnsupportedError("kwargs are made by the with statement: with Timeline() as timeline: ...")
        return {"options": self._options, "run_metadata": self._run_metadata}

    @property
    def run_metadata(self) -> Any:
        """The ``RunMetadata`` that was given or is being filled, or serialized bytes, or None."""
        return self._run_metadata

    @property
    def options(self) -> Any:
        """The ``RunOptions`` of the ``with`` statement, or None."""
        return self._options

    @property
    def wall_clock_elapsed(self) -> float:
        """Seconds spent in the ``with`` statement."""
        return self._elapsed

    # ----------------------------------------------------------------------------------------------------------- times

    def step_time(self, device_search_pattern: str | None = None, exclude_pattern: str | None = None) -> float:
        """Return the seconds from the first op's start to the last op's end.

        Args:
            device_search_pattern: only devices whose name contains it; if no name does, it is used as a regular expression.
            exclude_pattern: leave out ops whose timeline label contains it; if no label does, it is used as a regular expression.
        """
        return _extent(*self._times(device_search_pattern, exclude_pattern))

    def iteration_time(self, device_search_pattern: str | None = None, exclude_pattern: str | None = None) -> float:
        """Return ``step_time``; this is its name in tfvis."""
        return self.step_time(device_search_pattern, exclude_pattern)

    def computation_time(self, device_search_pattern: str | None = None, exclude_pattern: str | None = None) -> float:
        """Return the seconds in which at least one op ran, including communication unless ``exclude_pattern`` matches it."""
        return _union(*self._times(device_search_pattern, exclude_pattern))

    def communication_time(self, device_search_pattern: str | None = None, exclude_pattern: str | None = None) -> float:
        """Return the seconds in which at least one communication op ran."""
        return _union(*self._times(device_search_pattern, exclude_pattern, communication=True))

    def communication_elapsed_time(self, device_search_pattern: str | None = None, exclude_pattern: str | None = None) -> float:
        """Return the seconds from the first communication op's start to the last one's end."""
        return _extent(*self._times(device_search_pattern, exclude_pattern, communication=True))

    def _times(self, device: str | None, exclude: str | None, communication: bool = False) -> tuple[Int64, Int64]:
        """Return starts and ends in whole microseconds, rounded down, as tensorflow-tracer does."""
        trace = self._answers_of_trace().trace
        selected = trace.start != UNKNOWN_TIME
        if device is not None:
            selected &= _matches(StringTable.of([d.name for d in trace.devices]), device)[trace.device]
        if exclude is not None:
            selected &= ~_matches(trace.labels, exclude)[trace.label]
        if communication:
            selected &= self._communicates(trace)
        start, end = trace.start[selected], trace.end[selected]
        return (start + trace.origin_ns) // 1000, (end + trace.origin_ns) // 1000

    def _communicates(self, trace: Trace) -> Bool:
        """Return [nodes] whether each is a communication op."""
        is_named = np.array([name == (self._comm_op_name or RECEIVE) for name in trace.names], np.bool_)[trace.name]
        is_allreduce = _containing(trace.labels, ALLREDUCE)[trace.label]
        if self._horovod is None:
            return is_named | is_allreduce
        return is_allreduce if self._horovod else is_named

    # --------------------------------------------------------------------------------------------------------- exports

    def visualize(self, output_file: Path | None = None, device_pattern: str | None = None) -> str | None:
        """Write the trace as one HTML file that works offline; without ``output_file``, return it as a string.

        Args:
            output_file: the file to write. An older file is replaced when the page is complete.
            device_pattern: a regular expression; devices that do not match are hidden (and the page says so).
        """
        answers = self._answers_of_trace() if not device_pattern else self._answers_of_devices(device_pattern)
        record = one_trace.record_of(answers)
        page = "".join(html.page_of(answers, record, one_trace.session_of(record)))
        if output_file is None:
            return page
        _write(output_file, page.encode("utf-8"))
        return None

    def to_chrome_trace(self, path: Path | None = None, show_dataflow: bool = True, show_memory: bool = False) -> str | None:
        """Write Chrome's trace JSON, for chrome://tracing and Perfetto; without ``path``, return it as a string.

        Args:
            path: the file to write; gzip if it ends in ``.gz``.
            show_dataflow: add arrows along the edges of the graph.
            show_memory: add a counter of live bytes for each allocator.
        """
        answers = self._answers_of_trace() if show_memory else self._answers_of_nodes(not show_dataflow)
        parts = chrome.chrome_traces([("", answers)], show_dataflow=show_dataflow, show_memory=show_memory)
        if path is None:
            return "".join(parts)
        _write(path, b"".join(part.encode("utf-8", "replace") for part in parts))
        return None

    def to_perfetto(self, path: Path) -> None:
        """Write Chrome's trace JSON with arrows and memory counters, for ui.perfetto.dev and its SQL; gzip if ``.gz``."""
        self.to_chrome_trace(path, show_memory=True)

    # ----------------------------------------------------------------------------------------------------------- files

    @arguments.also_named(pickle_file_name="path")
    def to_pickle(self, path: Path) -> None:
        """Write the RunMetadata as a pickle that tensorflow-tracer can load; ``load`` and ``from_pickle`` can, too."""
        _write(path, legacy_pickles.pickled(self._raw()))

    @classmethod
    @arguments.also_named(pickle_file_name="path")
    def from_pickle(cls, path: Path, **kwargs: Any) -> Timeline:
        """Read a RunMetadata's pickle without executing anything in it; ``kwargs`` as for the class.

        Raises ``UnsafePickleError`` if the pickle names any other class than RunMetadata.
        """
        return cls._imported(open_any.open_pickle(path), path, kwargs)

    def save(self, path: Path) -> None:
        """Write the serialized RunMetadata (``.pb``); gzip if the name ends in ``.gz``."""
        _write(path, self._raw())

    @classmethod
    def load(cls, path: Path, **kwargs: Any) -> Timeline:
        """Open a file with a trace; if it has several, the last one. ``kwargs`` as for the class.

        RunMetadata or StepStats (``.pb``, ``.pbtxt``, ``.json``), a profile (``.xplane.pb``), a pickle of tensorflow-tracer
        or tfvis, a Timeline JSON as TensorFlow and ProfilerHook write it, a tfevents file, a ``.tftrace`` session; each also as
        ``.gz``.
        """
        if _is_session(path):
            return cls._recorded(path, kwargs)
        return cls._imported(open_any.open_any(path), path, kwargs)

    @classmethod
    def _recorded(cls, path: Path, kwargs: dict[str, Any]) -> Timeline:
        """Open the last trace of a .tftrace session."""
        from tftracer.session.files.saved import open_session

        session = open_session(path)
        try:
            traces = [trace for run in session.runs() for trace in run["traces"] if trace["state"] != "broken"]
            if not traces:
                raise FormatError(f"{os.fspath(path)!r} (a session) holds no trace: nothing to show")
            last_trace = max(traces, key=lambda trace: trace["started_at"])
            timeline = cls(run_metadata=session.trace_bytes(last_trace["id"]), **kwargs)
            requested_ops = timeline._context.communication_ops
            timeline._context = dataclasses.replace(session.trace_context(last_trace["id"]))
            timeline._context.communication_ops = requested_ops or timeline._context.communication_ops
            timeline._elapsed = last_trace["duration_s"] or 0.0
            return timeline
        finally:
            session.close()

    @classmethod
    def _imported(cls, imported: Imported, path: Path, kwargs: dict[str, Any]) -> Timeline:
        """Open the last trace of an imported file."""
        traces = [trace for run in imported.runs for trace in run.traces]
        if not traces:
            raise FormatError(f"{os.fspath(path)!r} ({imported.kind}) holds no trace: nothing to show")
        last_trace = max(traces, key=lambda trace: trace.started_at or 0.0)
        timeline = cls(run_metadata=last_trace.raw, **kwargs)
        timeline._elapsed = last_trace.duration_s or 0.0
        timeline._context.step_s = last_trace.duration_s
        timeline._context.findings = [*imported.findings, *last_trace.findings]
        timeline._context.title = last_trace.title or imported.runs[0].title
        return timeline

    # ------------------------------------------------------------------------------------------------------- the trace

    def _raw(self) -> bytes:
        metadata = self._run_metadata
        if metadata is None:
            raise UnsupportedError(
                "no trace yet: run a step with **timeline.kwargs inside `with Timeline() as timeline:`, or use Timeline.load"
            )
        return metadata if isinstance(metadata, bytes) else bytes(metadata.SerializeToString())

    def _answers_of_trace(self) -> Answers:
        """Return the answers about the whole trace.

        They are cached until the RunMetadata changes, because the with statement may be entered again.
        """
        raw = self._raw()
        if self._answers is None or self._answers.trace.raw != raw:
            self._answers = Answers(raw, self._context)
        return self._answers

    def _answers_of_nodes(self, without_edges: bool) -> Answers:
        """Return answers about the nodes. If possible, do not serialize the graphs: that takes as long as serializing the nodes.

        ``without_edges``: whether the caller does not need the graphs' edges.
        """
        metadata = self._run_metadata
        if self._answers is not None or metadata is None or isinstance(metadata, bytes):
            return self._answers_of_trace()
        graphs = len(metadata.partition_graphs) or metadata.HasField("cost_graph")
        if not graphs or len(metadata.step_stats.dev_stats) > 1:
            return self._answers_of_trace()
        answers = Answers(_without_graphs(metadata), self._context)
        return answers if without_edges or chrome.labels_hold_all_edges(answers.trace) else self._answers_of_trace()

    def _answers_of_devices(self, device_pattern: str) -> Answers:
        try:
            Pattern(device_pattern)
        except PatternError as error:
            raise UnsupportedError(f"device_pattern must be a regular expression that tftracer can use: {error}") from error
        return Answers(self._raw(), dataclasses.replace(self._context, device_pattern=device_pattern))


#: Field numbers of a RunMetadata in all versions of TensorFlow: step_stats, cost_graph, partition_graphs.
_STATS, _COST, _GRAPHS = 1, 2, 3


def _without_graphs(metadata: Any) -> bytes:
    """Serialize a RunMetadata with its nodes, and with empty cost and partition graphs if it has any."""
    stats = message_field(_STATS, metadata.step_stats.SerializeToString())
    cost, graphs = message_field(_COST) * metadata.HasField("cost_graph"), message_field(_GRAPHS) * len(metadata.partition_graphs)
    return b"".join([stats, cost, graphs])


def _is_session(path: Path) -> bool:
    from tftracer.storage.tftrace_format import is_session

    try:
        with os.fdopen(open_plain(path), "rb") as file:
            return is_session(file.read(64))
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"cannot read {os.fspath(path)!r}: {reason}. Check the path and its rights") from error


def _extent(start: Int64, end: Int64) -> float:
    """Return the seconds from the first start to the last end; ``start`` and ``end`` are in microseconds."""
    return int(end.max() - start.min()) / 1e6 if len(start) else 0.0


def _union(start: Int64, end: Int64) -> float:
    """Return the seconds that the intervals cover; ``start`` and ``end`` are in microseconds."""
    cover = Cover.of(start, end)
    return int((cover.end - cover.start).sum()) / 1e6


def _containing(table: StringTable, text: str) -> Bool:
    return np.array([text in entry for entry in table], np.bool_)


def _matches(table: StringTable, pattern: str) -> Bool:
    """Return [entries] whether each contains ``pattern``; if none contains it, whether each matches it as a regular
    expression."""
    as_text = _containing(table, pattern)
    if as_text.any():
        return as_text
    try:
        return Pattern(pattern).search_all(table)
    except PatternError:
        return as_text


def _write(path: Path, body: bytes) -> None:
    """Write a file atomically: to a temporary file in the same folder first, then renamed."""
    target = pathlib.Path(path)
    if target.suffix == ".gz":
        body = gzip.compress(body, 6)
    try:
        with replacing(target, mode=0o666, lasting=False) as file:
            file.write(body)
    except OSError as error:
        raise StorageError(
            f"cannot write {os.fspath(path)!r}: {error.strerror}. Choose a folder that you may write to"
        ) from error
