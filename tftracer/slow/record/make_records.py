"""Makes the records of slow steps for a session's file. read_slow_steps.py reads them; see docs/file-format.rst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import msgpack

from tftracer.contract.stalls import GapProfile, Period, SlowKind, Stall, StallStacks
from tftracer.slow.answer.messages import SlowMark
from tftracer.slow.record.kept_slow_steps import SlowLog, StallState
from tftracer.storage.spool import NewRecord
from tftracer.storage.tftrace_format import GAPS, KINDS, MARKS, PERIOD, STALL, compress

#: Fields that are not stored, because answers.py computes them from other records or fields.
_NOT_STORED = ("trace_id", "every", "step_text")


def stall_record(message: Stall, number: int, is_traced: bool, stacks: StallStacks) -> NewRecord:
    """Make the record of a new slow step. ``number``: its number among the slow steps of its run."""
    raw = bytes(msgpack.packb(stacks, unicode_errors="replace"))
    return NewRecord(STALL, _meta(message, number, is_traced), compress(raw), len(raw))


def copied_stall_record(state: StallState) -> NewRecord:
    """Make the record of a slow step from a file. Its stacks are copied with their checksum, damaged or not."""
    meta = {**_meta(state.message, state.number, state.is_traced), "payload_crc": state.stacks.crc}
    return NewRecord(STALL, meta, state.stacks.frame_unchecked(), state.stacks.raw_size)


def _meta(message: Stall, number: int, is_traced: bool) -> dict[str, object]:
    stored = {name: value for name, value in message.items() if name not in _NOT_STORED}
    return {**stored, "number": number, "is_traced": is_traced}


def period_record(period: Period) -> NewRecord:
    return NewRecord(PERIOD, cast("dict[str, object]", dict(period)))


def kinds_record(run_id: int, kinds: Sequence[SlowKind]) -> NewRecord:
    """Make the record of a run's kinds: sums over all its slow steps that come earlier in the file or were dropped."""
    return NewRecord(KINDS, {"run_id": run_id, "kinds": list(kinds)})


def gaps_record(profile: GapProfile) -> NewRecord:
    return NewRecord(GAPS, cast("dict[str, object]", dict(profile)))


def marks_record(marks: Sequence[SlowMark]) -> NewRecord:
    return NewRecord(MARKS, {"marks": [mark._asdict() for mark in marks]})


def all_records(log: SlowLog) -> Iterator[NewRecord]:
    """Yield the records of a whole log. In the file they must follow the records of the runs."""
    for state in log.stalls.values():
        yield copied_stall_record(state)
    for run_id in sorted({kind["run_id"] for kind in log.kinds.all()}):
        yield kinds_record(run_id, log.kinds.of_run(run_id))
    yield from map(period_record, log.periods.values())
    yield from map(gaps_record, log.gaps.values())
    marks = log.all_marks()
    if marks:
        yield marks_record(marks)
