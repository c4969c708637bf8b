"""The sums of a ledger at one moment. Each write to the session's file adds a whole record; only the newest one counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from tftracer.ledger.activity import MAX_DATASETS, STEPPING, STEPS
from tftracer.ledger.add_up_activities import MAX_NAMES, MAX_SLOW, SlowEntry, Sums
from tftracer.storage.spool import NewRecord
from tftracer.storage.tftrace_format import LEDGER
from tftracer.storage.untrusted import Fields, count, duration, duration_or_none, fields_of, moment, readers, text, tuple_of


@dataclass(frozen=True)
class Entry:
    rank: int  # SUSPENDED to STEPS (activity.py)
    run_id: int  # 0: not of a run
    name: str  # name of the activity; "" for a run's steps
    own_s: float
    times: int
    first_s: float | None  # of a run: the time that counts for its first step


@dataclass(frozen=True)
class StepWait:
    """Waits for elements of a dataset within steps: a part of the time of the steps' entries."""

    name: str
    own_s: float


@dataclass(frozen=True)
class LedgerFacts:
    """All times are in seconds. Entries, ``asleep_s`` and the three times without any activity add up to the wall time."""

    started_at: float  # start of the process, epoch seconds
    until: float
    recorded_s: float | None  # from the start to the beginning of the recording; None: ``started_at`` is that beginning
    start_s: float  # before the first step
    between_s: float  # between steps
    end_s: float  # after the last one
    asleep_s: float  # sleep of the machine
    entries: tuple[Entry, ...]
    slow: tuple[SlowEntry, ...]
    step_waits: tuple[StepWait, ...] = ()
    no_cpu_s: float | None = None  # time for which the training's thread could have run and had no CPU; None: not known
    own_cpu_s: float | None = None  # CPU time of the tracer's threads and of the processes that they started; None: not known

    @property
    def wall_s(self) -> float:
        return self.start_s + self.between_s + self.end_s + self.asleep_s + sum(entry.own_s for entry in self.entries)


def facts_of(
    sums: Sums,
    slow: list[SlowEntry],
    step_waits: Mapping[str, float],
    now_ns: int,
    now: float,
    asleep_ns: int,
    began_ns: int | None,
    no_cpu_ns: int | None,
    own_cpu_s: float | None = None,
) -> LedgerFacts:
    """Make the facts. ``now_ns`` (perf_counter), ``now`` (epoch seconds): one moment. ``began_ns``: start of the recording."""
    start, between, end = (ns * 1e-9 for ns in sums.rest_ns)
    entries = []
    for (rank, what), row in sums.rows.items():
        run_id, name = (0, what) if isinstance(what, str) else (what.run_id, "")
        entries.append(Entry(rank, run_id, name, row.own_ns * 1e-9, row.times, row.first_ns and row.first_ns * 1e-9))
    return LedgerFacts(
        started_at=now - (now_ns - sums.since_ns + asleep_ns) * 1e-9,
        until=now,
        recorded_s=None if began_ns is None else (began_ns - sums.since_ns) * 1e-9,
        start_s=start,
        between_s=between,
        end_s=end,
        asleep_s=asleep_ns * 1e-9,
        entries=tuple(entries),
        slow=tuple(slow),
        step_waits=tuple(StepWait(name, seconds) for name, seconds in step_waits.items() if seconds > 0),
        no_cpu_s=None if no_cpu_ns is None else no_cpu_ns * 1e-9,
        own_cpu_s=own_cpu_s,
    )


def record(facts: LedgerFacts) -> NewRecord:
    return NewRecord(LEDGER, asdict(facts))


def _rank(given: Any) -> int:
    return min(count(given, STEPS), STEPS)


_KINDS: Fields = {"str": partial(text, limit=1000), "float": duration, "float | None": duration_or_none}
_FACTS = readers(
    LedgerFacts,
    kinds=_KINDS,
    started_at=moment,
    until=moment,
    entries=tuple_of(Entry, MAX_NAMES + 8, _KINDS, rank=_rank),
    slow=tuple_of(SlowEntry, MAX_SLOW + 8, _KINDS),
    step_waits=tuple_of(StepWait, MAX_DATASETS, _KINDS),
)


def read(meta: Mapping[str, Any]) -> LedgerFacts:
    """Return the facts in a record of a file. Files are untrusted, so the types are checked."""
    return LedgerFacts(**fields_of(dict(meta), _FACTS))


def has_steps(facts: LedgerFacts) -> bool:
    return any(entry.rank in STEPPING for entry in facts.entries)
