"""Reads slow steps from a file's records, which are untrusted: types, sizes and references are checked."""

from __future__ import annotations

from typing import Any, cast, get_args

from tftracer.contract.stalls import (
    CodeKind,
    CodeLine,
    GapProfile,
    OtherCause,
    PartKind,
    Period,
    SlowKind,
    StackFrame,
    Stall,
    StallCause,
    StallPart,
    StallStacks,
    WithoutCpu,
)
from tftracer.errors import FormatError
from tftracer.slow.answer.code_lines import MAX_LINES, MAX_NODES
from tftracer.slow.answer.messages import SlowMark
from tftracer.slow.record.kept_slow_steps import MAX_MARKS, SlowLog, StallState
from tftracer.slow.record.sums_by_kind import MAX_KINDS
from tftracer.storage.tftrace_format import Record, StoredPayload
from tftracer.storage.tftrace_reader import unpack_map
from tftracer.storage.untrusted import (
    Fields,
    count,
    count_or_none,
    duration,
    duration_or_none,
    fields_of,
    items,
    number,
    one_of,
    positive_or_none,
    readers,
    rows_of,
    seconds,
    table,
    text,
)

#: Maximum bytes of a slow step's unpacked stacks. MAX_NODES nodes whose frames have long paths take far less.
MAX_STACKS = 8 << 20


def _share(given: Any) -> float:
    return min(max(seconds(given), 0.0), 1.0)


def _share_or_none(given: Any) -> float | None:
    return None if number(given) is None else _share(given)


def _short_text(given: Any) -> str:
    return text(given, 1000)


#: Maximum number of parts and of other causes of a slow step, and of sentences of evidence.
MAX_PARTS, MAX_EVIDENCE = 20, 20
#: Type in the contract -> function that reads such a value.
_READERS: Fields = {
    "str": _short_text,
    "int | None": positive_or_none,
    "float": duration,
    "float | None": duration_or_none,
    "Place": one_of("between", "inside"),
    "StallCause": one_of("unknown", *get_args(StallCause)),
    "PartKind": one_of("unknown", *get_args(PartKind)),
    "CodeKind": one_of(*get_args(CodeKind)),
    "WithoutCpu": one_of(*get_args(WithoutCpu)),
    "list[str]": lambda given: [_short_text(item) for item in items(given)[:MAX_EVIDENCE] if isinstance(item, str)],
}
_READERS["list[CodeLine]"] = rows_of(CodeLine, MAX_LINES, _READERS, share=_share, doubtful=_share)
_READERS["list[StallPart]"] = rows_of(StallPart, MAX_PARTS, _READERS)
_READERS["list[OtherCause]"] = rows_of(OtherCause, MAX_PARTS, _READERS)
STALL_FIELDS = readers(
    Stall,
    kinds=_READERS,
    started_at=seconds,
    step_text=lambda given: "",
    trace_id=lambda given: None,
    every=lambda given: None,
)
KIND_FIELDS = readers(SlowKind, kinds=_READERS, last_at=seconds)
PERIOD_FIELDS = readers(Period, kinds=_READERS, next_step=count_or_none)
GAP_FIELDS = readers(
    GapProfile, kinds=_READERS, state=one_of("ready"), sampled_at=number, share=_share_or_none, gc_share=_share_or_none
)
FRAME = readers(StackFrame, kinds=_READERS, source=lambda given: "")


def apply_stall(log: SlowLog, record: Record, run_id: int) -> None:
    """Add a slow step. ``run_id``, here and below: the id of a run that exists."""
    message = cast(Stall, {**fields_of(record.meta, STALL_FIELDS), "run_id": run_id})
    if message["id"] and message["id"] not in log.stalls:
        number, is_traced = count(record.meta.get("number")), record.meta.get("is_traced") is True
        log.add(StallState(message, number, is_traced, record.payload, record.size))


def apply_kinds(log: SlowLog, record: Record, run_id: int) -> None:
    """Replace the sums over the slow steps that precede this record."""
    given = items(record.meta.get("kinds"))[:MAX_KINDS]
    kinds = [cast(SlowKind, {**fields_of(table(each), KIND_FIELDS), "run_id": run_id}) for each in given]
    log.kinds.replace(run_id, [kind for kind in kinds if kind["times"]])


def apply_period(log: SlowLog, record: Record, run_id: int) -> None:
    period = cast(Period, {**fields_of(record.meta, PERIOD_FIELDS), "run_id": run_id})
    if period["every"]:
        log.put_period(period)


def apply_gaps(log: SlowLog, record: Record, run_id: int) -> None:
    log.gaps[run_id] = cast(GapProfile, {**fields_of(record.meta, GAP_FIELDS), "run_id": run_id})


def apply_marks(log: SlowLog, record: Record) -> None:
    for given in items(record.meta.get("marks"))[: 3 * MAX_MARKS]:
        mark = table(given)
        if mark.get("kind") in ("gc", "checkpoint", "host"):
            length, share = duration_or_none(mark.get("duration_s")), duration_or_none(mark.get("share"))
            log.add_mark(SlowMark(mark["kind"], seconds(mark.get("at")), length, _short_text(mark.get("text")), share))


def read_stacks(payload: StoredPayload) -> StallStacks:
    """Read a slow step's stacks. Raises ``FormatError`` if they are damaged, or not in the form that a session writes."""
    if payload.raw_size > MAX_STACKS:
        raise FormatError("A slow step's stacks are larger than any that tftracer writes; the file is damaged.")
    given = unpack_map(payload.raw()) if payload.size else {}
    frames = [fields_of(item, FRAME) for item in items(given.get("frames"))[:MAX_NODES]]
    nodes = zip(*(items(given.get(name)) for name in ("parent", "frame", "seconds", "samples")))
    stacks: Any = {"frames": frames, "parent": [], "frame": [], "seconds": [], "samples": []}
    for position, (parent, frame, length, samples) in enumerate(nodes):
        if position >= MAX_NODES or not _refers(parent, -1, position) or not _refers(frame, 0, len(frames)):
            break  # later nodes may refer to this one
        for name, value in (("parent", parent), ("frame", frame), ("seconds", duration(length)), ("samples", count(samples))):
            stacks[name].append(value)
    stacks["samples_left_out"] = count(given.get("samples_left_out"))
    return cast(StallStacks, stacks)


def _refers(value: object, minimum: int, end: int) -> bool:
    return type(value) is int and minimum <= value < end
