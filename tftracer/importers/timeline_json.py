"""Converts Chrome's trace JSON, as TensorFlow's ``timeline.Timeline`` and ``ProfilerHook`` write it, to a RunMetadata.

TensorFlow writes a process for each device (``... Compute``), a thread for each row, and a slice for each op, with its name, op
type and inputs in ``args``: enough for a StepStats. The same reader opens our own export and any other trace of complete events
(``"ph": "X"``). The format records no memory, no scheduling times and no graph; a finding says so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tftracer.contract.basics import Finding
from tftracer.errors import FormatError, TruncatedError
from tftracer.importers.cut_imports import is_cut_json
from tftracer.importers.imported import Imported, ImportedRun, ImportedTrace
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.valid_times import LATEST_NS
from tftracer.trace.verdict.findings import TRACE_CUT

_MAX_EVENTS = 1 << 23
_MAX_INPUTS = 10_000
_MAX_TIME_US = LATEST_NS // 1000
_MAX_TEXT = 100_000
_CUT_FILE = "The file ends early, in the middle of its events: its trace has only those before the end. Copy it again."
_SEPARATORS = re.compile(r"[\s,]*")
_GPU_TRACER = re.compile(r"/stream:|/memcpy")


def looks_like_json(head: bytes) -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def read(text: str) -> Imported:
    """Convert each trace to a RunMetadata. A file may have several JSON documents, if a loop appended to it.

    Raises FormatError if it is not JSON or has no slices, and TruncatedError if it ends before the first slice.
    """
    traces: list[ImportedTrace] = []
    damage, at = "", _skip_separators(text, 0)
    while not damage and (at < len(text) or not traces):
        slices = _Slices()
        events = _Events(text, at, slices.about)
        try:
            for event in events:
                slices.take(event)
        except _Cut:
            damage = _CUT_FILE
        except FormatError:
            if not traces:
                raise
            damage = f"The content after trace {len(traces)} in the file is no trace: it was left out."
            break
        if slices.by_process:
            traces.append(ImportedTrace(_run_metadata(slices), findings=_findings(slices, bool(damage))))
        elif damage and not traces:
            raise TruncatedError("the JSON ends early, before its first slice: copy it again")
        elif events.at >= len(text) and not traces:
            raise FormatError(
                'the JSON holds no slices ("ph": "X"): it is not a Timeline of TensorFlow. Write one with '
                "timeline.Timeline(run_metadata.step_stats).generate_chrome_trace_format(), or keep the RunMetadata itself"
            )
        at = events.at
    return Imported("Timeline JSON", [ImportedRun("Timeline", traces=traces)], cut=damage)


# ------------------------------------------------------------------------------------------------------------------ JSON


class _Cut(Exception):
    """The text ends inside the list of events."""


def _parse_integer(text: str) -> int:
    if len(text) > 20:  # the time to convert a number grows with the square of its length
        raise FormatError("the JSON holds a number of more than 20 digits")
    return int(text)


def _reject_constant(text: str) -> None:
    raise FormatError(f"the JSON holds {text}, which is not a number")


_DECODER = json.JSONDecoder(parse_int=_parse_integer, parse_constant=_reject_constant)


def _value(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        if is_cut_json(error):
            raise _Cut from error
        raise FormatError(f"this is not JSON: {error.msg} in line {error.lineno}") from error
    except RecursionError as error:
        raise FormatError("the JSON is nested too deeply") from error


def _skip_separators(text: str, at: int) -> int:
    match = _SEPARATORS.match(text, at)
    return match.end() if match else at


class _Events:
    """Iterates over the events of the document at ``at``, with only one event in memory at a time.

    At the end, ``at`` is the end of the document. The fields before the list of events are stored in ``about``.
    """

    def __init__(self, text: str, at: int, about: dict[str, Any]) -> None:
        self._text, self.at, self._about = text, at, about

    def __iter__(self) -> Iterator[Any]:
        text, in_object = self._text, self._text[self.at : self.at + 1] != "["
        at = _list_of_events(text, self.at, self._about) if in_object else self.at
        at = _skip_separators(text, at + 1)
        for _ in range(_MAX_EVENTS):
            if text[at : at + 1] == "]":
                self.at = _skip_separators(text, _end_of_object(text, at + 1) if in_object else at + 1)
                return
            if at >= len(text):
                raise _Cut
            event, at = _value(text, at)
            at = _skip_separators(text, at)
            yield event
        raise FormatError(f"the JSON holds more than {_MAX_EVENTS} events")


def _end_of_object(text: str, at: int) -> int:
    """Return the end of the object whose list of events ends at ``at``; the end of the text if the object is incomplete."""
    at = _skip_separators(text, at)
    while text[at : at + 1] == '"':
        try:
            at = _skip_separators(text, _value(text, at)[1])
            if text[at : at + 1] != ":":
                break
            at = _skip_separators(text, _value(text, _skip_separators(text, at + 1))[1])
        except _Cut:  # all events are complete
            return len(text)
    return at + 1 if text[at : at + 1] == "}" else len(text)


def _list_of_events(text: str, at: int, about: dict[str, Any]) -> int:
    """Return the position of the list ``traceEvents`` in the object at ``at``. Fields before it go to ``about``."""
    at = _skip_separators(text, at + 1)
    while at < len(text) and text[at] == '"':
        key, at = _value(text, at)
        at = _skip_separators(text, at)
        if text[at : at + 1] != ":":
            break
        at = _skip_separators(text, at + 1)
        if key == "traceEvents" and text[at : at + 1] == "[":
            return at
        about[key], at = _value(text, at)
        at = _skip_separators(text, at)
    if at >= len(text):
        raise _Cut
    raise FormatError('the JSON has no list "traceEvents": it is not a trace')


# ---------------------------------------------------------------------------------------------------------------- slices


class _Slices:
    """The slices by process, and the processes' names."""

    def __init__(self) -> None:
        self.by_process: dict[Any, list[dict[str, Any]]] = {}
        self.names: dict[Any, str] = {}
        self.about: dict[str, Any] = {}
        self.broken = 0
        self.memory = False

    def take(self, event: Any) -> None:
        if not isinstance(event, dict) or not isinstance(event.get("pid", 0), (int, str)):
            self.broken += 1
            return
        phase, pid = event.get("ph"), event.get("pid", 0)
        if phase == "X":
            self._slice(event, pid)
        elif phase == "M" and event.get("name") == "process_name":
            args = _args(event)
            self.names[pid] = _string(args.get("device")) or _string(args.get("name"))  # our own export writes "device"
        elif phase in ("O", "C"):
            self.memory = True

    def _slice(self, event: dict[str, Any], pid: Any) -> None:
        if _is_time(event.get("ts")) and _is_time(event.get("dur", 0)):
            self.by_process.setdefault(pid, []).append(event)
        else:
            self.broken += 1

    @property
    def origin_ns(self) -> int:
        """The time to which the times in a file of our own export are relative; 0 for other files."""
        other = self.about.get("otherData")
        origin = _string(other.get("origin_ns")) if isinstance(other, dict) else ""
        return int(origin) if origin.isascii() and origin.isdigit() and len(origin) < 20 and int(origin) <= LATEST_NS else 0

    def device(self, pid: Any) -> str:
        return (self.names.get(pid) or f"process {pid}").removesuffix(" Compute")


def _args(event: dict[str, Any]) -> dict[str, Any]:
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def _string(value: Any) -> str:
    return value[:_MAX_TEXT] if isinstance(value, str) else ""


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _MAX_TIME_US


def _run_metadata(slices: _Slices) -> bytes:
    message = message_class("RunMetadata")()
    for pid, events in slices.by_process.items():
        stats = message.step_stats.dev_stats.add()
        stats.device = _encodable(slices.device(pid))
        has_kernels = _GPU_TRACER.search(stats.device) is not None
        for event in events:
            _fill(stats.node_stats.add(), event, has_kernels, slices.origin_ns)
    return bytes(message.SerializeToString())


def _fill(node: Any, event: dict[str, Any], has_kernels: bool, origin_ns: int) -> None:
    """Fill a NodeExecStats from a slice. ``has_kernels``: whether its device is a stream of a GPU, with kernels and copies."""
    args = _args(event)
    start = origin_ns + nanoseconds(event["ts"])
    end = start + nanoseconds(event.get("dur", 0))
    op = _string(args.get("op")) or _string(event.get("name")) or "unknown"
    name = _string(args.get("name")) or _string(event.get("name")) or "unknown"
    node.all_start_micros, node.all_end_rel_micros = start // 1000, end // 1000 - start // 1000
    if start % 1000 or end % 1000:
        node.all_start_nanos, node.all_end_rel_nanos = start, end - start
    if isinstance(event.get("tid"), int) and 0 <= event["tid"] < 1 << 31:
        node.thread_id = event["tid"]
    node.node_name = _encodable(f"{name}:{op}" if has_kernels and op != "unknown" else name)
    if op == "unknown":
        return
    node.timeline_label = _encodable(op if has_kernels or name == "RecvTensor" else f"{name} = {op}({', '.join(_inputs(args))})")


def nanoseconds(micros: Any) -> int:
    """Convert microseconds. A float is rounded to whole nanoseconds, because thousandths are not exact in binary."""
    return micros * 1000 if isinstance(micros, int) else int(micros) * 1000 + round((micros - int(micros)) * 1000)


def _inputs(args: dict[str, Any]) -> list[str]:
    """Return the inputs: ``input0``, ``input1``, ... as TensorFlow writes them, or a list ``inputs``."""
    listed = args.get("inputs")
    if isinstance(listed, list):
        return [_string(entry) for entry in listed[:_MAX_INPUTS]]
    inputs = []
    for i in range(min(len(args), _MAX_INPUTS)):
        entry = args.get(f"input{i}")
        if entry is None:
            break
        inputs.append(_string(entry))
    return inputs


def _encodable(text: str) -> str:
    """Replace lone surrogates, which JSON may have but protobuf strings may not."""
    return text.encode("utf-8", "replace").decode("utf-8")


# -------------------------------------------------------------------------------------------------------------- findings


def _findings(slices: _Slices, cut: bool) -> list[Finding]:
    findings: list[Finding] = [
        {
            "code": "timeline_json",
            "severity": "info",
            "message": "This trace was a Timeline JSON, which has no scheduling times, no memory, no graph and no cost: "
            "the answers that need them are empty, and dependencies come from the names of the ops' inputs.",
            "remedy": "Keep the RunMetadata itself (Timeline.save, or a .tftrace session) to see them.",
        }
    ]
    if cut:
        findings.append(
            {
                "code": TRACE_CUT,
                "severity": "error",
                "message": "The file ends early, in the middle of its events, and the trace has only those before its end: ops "
                "and whole devices may be missing, totals are too low, and the step may look shorter than it was.",
                "remedy": "Copy the file again.",
            }
        )
    if slices.broken:
        findings.append(
            {
                "code": "bad_events",
                "severity": "warning",
                "message": f"{slices.broken} events have no usable time or process and were left out.",
                "remedy": "Write the file again, with the tool that wrote it first.",
            }
        )
    return findings
