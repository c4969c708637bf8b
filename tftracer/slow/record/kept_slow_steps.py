"""A session's slow steps, periods, gap profiles and marks, in bounded memory. It has no lock: the owner must hold one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from tftracer.contract import stalls as contract
from tftracer.errors import UnknownError
from tftracer.slow.answer.messages import SlowMark
from tftracer.slow.answer.texts import lines_text
from tftracer.slow.record.choose_kept import MAX_NEWEST, MAX_TRACED, KeptSteps
from tftracer.slow.record.steps_of_periods import StepsOfPeriods
from tftracer.slow.record.sums_by_kind import SlowKinds, by_cause, group_key, lost_s
from tftracer.storage.tftrace_format import StoredPayload
from tftracer.trace.model import SlowTime
from tftracer.trace.units import counted

#: A thread is named in traces of usual steps if it had Python's lock in at least this many slow steps.
MIN_LOCK_STEPS = 3
#: Maximum number of slow steps that are kept, of all runs together.
MAX_STALLS = 3000
MAX_PERIODS = 200
#: Maximum number of marks that are kept of each kind: the newest.
MAX_MARKS = 1000
#: Marks of the host with the same text are joined if they are less than this many seconds apart.
JOINED_S = 1.5


#: (run, length, first step) of a period.
PeriodKey = tuple[int, int, int]


def key_of(period: contract.Period) -> PeriodKey:
    return period["run_id"], period["every"], period["first_step"]


def by_cost(periods: Iterable[contract.Period]) -> list[contract.Period]:
    """Sort periods by the time that they add to an average step, the costliest first."""
    return sorted(periods, key=lambda period: -period["duration_s"] / period["every"])


@dataclass(frozen=True)
class StallState:
    """A slow step without its trace and its period, which depend on the rest of the session."""

    message: contract.Stall
    number: int  # its number among the slow steps of its run, from 1; earlier slow steps may have been dropped
    is_traced: bool  # whether there is, or was, a trace of its step
    stacks: StoredPayload
    record_bytes: int = 0  # size of its record in the file


@dataclass
class _RunFacts:
    """Facts about all slow steps of one run, and the ids of the slow steps that are kept."""

    no_cpu: KeptSteps = field(default_factory=KeptSteps)  # those of cause "machine", which would replace all others
    with_cpu: KeptSteps = field(default_factory=KeptSteps)
    count: int = 0
    longest_s: float = 0.0
    last_id: int = 0


_NO_FACTS = _RunFacts()


#: If shares come from fewer samples, they are rough, and the text says so.
FEW_SAMPLES = 20


class Headline(NamedTuple):
    """The text of a run's first group and the trace that explains it, with the number of steps and the traces of the run at that
    time."""

    text: str
    trace_id: int | None
    steps: int
    traces: Mapping[int, int]


def _count(sums: SlowKinds, message: contract.Stall, periods: StepsOfPeriods) -> None:
    """Add a slow step to the sums: once for each of its causes."""
    for stall in by_cause(message):
        sums.add(stall, periods.of_known_cause(stall))


class SlowLog:
    def __init__(self) -> None:
        self.stalls: dict[int, StallState] = {}  # by id, oldest first
        self.periods: dict[PeriodKey, contract.Period] = {}
        self.kinds = SlowKinds()
        self.gaps: dict[int, contract.GapProfile] = {}  # by run
        self.marks: dict[contract.MarkKind, deque[SlowMark]] = {}
        self._run_facts: dict[int, _RunFacts] = {}
        self.headlines: dict[int, Headline] = {}  # by run; removed at its next slow step or period
        self._sums_of: dict[int, SlowKinds] = {}  # results of ``kinds_of`` that are still valid, by run
        self._last_id = 0

    def stall(self, stall_id: int) -> StallState:
        try:
            return self.stalls[stall_id]
        except KeyError:
            gone = " It was dropped to make room for newer ones." if 0 < stall_id <= self._last_id else ""
            raise UnknownError(f"There is no slow step {stall_id} in this session.{gone}") from None

    def of_run(self, run_id: int) -> list[StallState]:
        """Return the slow steps of a run, the oldest first."""
        facts = self._run_facts.get(run_id, _NO_FACTS)
        ids = sorted(stall_id for category in (facts.no_cpu, facts.with_cpu) for stall_id in category.ids())
        return [self.stalls[stall_id] for stall_id in ids if stall_id in self.stalls]

    def count(self, run_id: int) -> int:
        """Return the number of slow steps that the run had in total."""
        return self._run_facts.get(run_id, _NO_FACTS).count

    def longest_s(self, run_id: int) -> float | None:
        return self._run_facts.get(run_id, _NO_FACTS).longest_s or None

    def copy(self) -> SlowLog:
        """Return a copy of what a file stores, without counts of runs. It shares the states, which never change."""
        other = SlowLog()
        other.stalls, other.periods, other.gaps = self.stalls.copy(), self.periods.copy(), self.gaps.copy()
        other.kinds = self.kinds.copy()
        other.marks = {kind: marks.copy() for kind, marks in self.marks.items()}
        return other

    def next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def add(self, state: StallState) -> list[StallState]:
        """Add a slow step, and return the slow steps that are dropped to make room for it."""
        message = state.message
        facts = self._run_facts.setdefault(message["run_id"], _RunFacts())
        facts.count = max(facts.count + 1, state.number)
        facts.longest_s = max(facts.longest_s, message["duration_s"])
        facts.last_id = message["id"]
        self._forget(message["run_id"])
        _count(self.kinds, message, self.steps_of_periods(message["run_id"]))
        category = facts.no_cpu if message["cause"] == "machine" else facts.with_cpu
        category.newest.append(message["id"])
        self.stalls[message["id"]] = state
        self._last_id = max(self._last_id, message["id"])
        states = self.of_run(message["run_id"])
        ids = [self._id_to_drop(category), next(iter(self.stalls)) if len(self.stalls) > MAX_STALLS else None]
        dropped = [self.stalls.pop(stall_id) for stall_id in ids if stall_id in self.stalls]
        if dropped and len(states) == facts.count:  # the first drop: compute the sums with the periods that are known now
            self.kinds.replace(message["run_id"], self._sums(message["run_id"], states).of_run(message["run_id"]))
        return dropped

    def _forget(self, run_id: int) -> None:
        """Forget what was computed from the run's slow steps and periods, because these change."""
        self._sums_of.pop(run_id, None)
        self.headlines.pop(run_id, None)

    def kinds_of(self, run_id: int) -> SlowKinds:
        """Return the sums of a run's slow steps.

        While no slow step was dropped, they are computed with the periods that are known now.
        """
        if run_id not in self._sums_of:
            states = self.of_run(run_id)
            self._sums_of[run_id] = self._sums(run_id, states) if states and len(states) == self.count(run_id) else self.kinds
        return self._sums_of[run_id]

    def _sums(self, run_id: int, states: Iterable[StallState]) -> SlowKinds:
        sums, periods = SlowKinds(), self.steps_of_periods(run_id)
        for state in states:
            _count(sums, state.message, periods)
        return sums

    def add_run(self, other: SlowLog, run_id: int, new_id: int) -> None:
        """Add a run of another session's log. The run and its slow steps get new numbers here."""
        for state in other.of_run(run_id):
            message: contract.Stall = {**state.message, "id": self.next_id(), "run_id": new_id}
            self.add(replace(state, message=message))
        self.kinds.replace(new_id, [{**kind, "run_id": new_id} for kind in other.kinds_of(run_id).of_run(run_id)])
        for period in other.periods_of(run_id):
            self.put_period({**period, "run_id": new_id})
        if run_id in other.gaps:
            self.gaps[new_id] = {**other.gaps[run_id], "run_id": new_id}

    def _id_to_drop(self, category: KeptSteps) -> int | None:
        """Return the id of the older slow step to drop if too many are kept; else None."""
        if len(category.newest) <= MAX_NEWEST:
            return None
        stall_id = category.newest.popleft()
        if stall_id in self.stalls and self.stalls[stall_id].is_traced:
            category.traced.append(stall_id)
            if len(category.traced) <= MAX_TRACED:
                return None
            stall_id = category.traced.popleft()
        if stall_id not in self.stalls:
            return None
        message = self.stalls[stall_id].message
        periods, keys = self.steps_of_periods(message["run_id"]), []
        for stall in by_cause(message):
            period = periods.period_of(stall)
            keys.append((group_key(periods.of_known_cause(stall) or stall), period is not None, "" if period else stall["place"]))
        return category.add_older(stall_id, lost_s(message), keys)

    def put_period(self, period: contract.Period) -> None:
        """Add or replace a period; beyond MAX_PERIODS the period with the fewest slow steps is dropped.

        A period without slow steps has become a part of another period, and is removed.
        """
        self.periods[key_of(period)] = period
        self._forget(period["run_id"])
        if not period["times"]:
            del self.periods[key_of(period)]
        if len(self.periods) > MAX_PERIODS:
            del self.periods[min(self.periods, key=lambda key: self.periods[key]["times"])]

    def count_into(self, period: contract.Period) -> None:
        """Count earlier slow steps of unknown cause or line as slow steps of a period that has just been proven."""
        run_id = period["run_id"]
        periods = self.steps_of_periods(run_id)
        other_periods = self.steps_of_periods(
            run_id, [each for each in self.periods_of(run_id) if key_of(each) != key_of(period)]
        )
        stalls = [stall for state in self.of_run(run_id) for stall in by_cause(state.message)]
        # Leave out slow steps that other periods explain: they are counted with the kinds of those periods.
        stalls = [stall for stall in stalls if other_periods.of_known_cause(stall) is None]
        for stall in [stall for stall in stalls if periods.of_known_cause(stall) is period]:
            stalls.remove(stall)
            self.kinds.move(stall, period, stalls)

    def moved(self, stall_id: int, stacks: StoredPayload) -> None:
        """Set the new position of a slow step's stacks in the file."""
        if stall_id in self.stalls:
            self.stalls[stall_id] = replace(self.stalls[stall_id], stacks=stacks)

    def add_mark(self, mark: SlowMark) -> None:
        """Add a mark. If it directly follows a mark of the host with the same text, join it to that mark."""
        marks = self.marks.setdefault(mark.kind, deque(maxlen=MAX_MARKS))
        last = marks[-1] if marks else None
        if mark.kind == "host" and last and 0 <= mark.at - last.end < JOINED_S and mark.text == last.text:
            length = mark.end - last.at
            troubled = sum((each.share or 0.0) * (each.duration_s or 0.0) for each in (last, mark))
            share = None if mark.share is None or last.share is None or length <= 0 else min(troubled / length, 1.0)
            marks[-1] = last._replace(duration_s=length, share=share)
        else:
            marks.append(mark)

    def all_marks(self) -> list[SlowMark]:
        """Return all marks in order of time."""
        return sorted((mark for marks in self.marks.values() for mark in marks), key=lambda mark: mark.at)

    def last_at(self, run_id: int) -> float | None:
        """Return when the newest slow step began, in epoch seconds; None if there is none."""
        newest = self.stalls.get(self._run_facts.get(run_id, _NO_FACTS).last_id)
        return newest.message["started_at"] if newest else None

    def lines_of(self, run_id: int, whole_turns: bool) -> str:
        """Return the lines of the time between the run's steps, or of its whole turns, in words, with the number of samples if it
        is low; "" if not known."""
        gaps = self.gaps.get(run_id)
        if not gaps or not gaps["lines"] or gaps["whole_turns"] != whole_turns:
            return ""
        few = f" (by {counted(gaps['samples'], 'sample')} only)" if gaps["samples"] < FEW_SAMPLES else ""
        return lines_text(gaps["lines"]) + few

    def sampled_gc(self, run_id: int) -> float:
        """Return the share of garbage collections in the time whose lines were sampled; 0: none, or not known."""
        gaps = self.gaps.get(run_id)
        return (gaps["gc_share"] or 0.0) if gaps else 0.0

    def lock_holder(self, run_id: int) -> str:
        """Return the script's thread that had Python's lock in at least ``MIN_LOCK_STEPS`` slow steps of the run, with its line.

        "": there is none.
        """
        held = [
            kind for kind in self.kinds_of(run_id).of_run(run_id) if kind["cause"] == "lock" and kind["times"] >= MIN_LOCK_STEPS
        ]
        named = [kind for kind in held if kind["place"].startswith("thread ")]
        return max(named, key=lambda kind: kind["lost_s"])["place"] if named else ""

    def slow_times(self, run_id: int, step: int | None) -> list[SlowTime]:
        """Return the slow steps with this step number (inside it, or before it), for the step's trace; [] if it is None."""
        return [
            {
                "inside": stall["where"] == "inside",
                "duration_s": stall["duration_s"],
                "usual_s": stall["expected_s"],
                "cause": stall["cause"],
                "without_cpu": stall["without_cpu"],
                "text": stall["text"],
                "lines": lines_text(stall["lines"]),
            }
            for stall in (state.message for state in self.of_run(run_id))
            if step is not None and stall["step"] == step
        ]

    def periods_of(self, run_id: int) -> list[contract.Period]:
        """Return the periods of a run, the costliest first."""
        return by_cost(period for (owner, *_), period in self.periods.items() if owner == run_id)

    def steps_of_periods(self, run_id: int, periods: Sequence[contract.Period] | None = None) -> StepsOfPeriods:
        """Return what finds the periods of a run's slow steps. ``periods``: only these; None: all."""
        periods = self.periods_of(run_id) if periods is None else periods
        return StepsOfPeriods(periods, lambda: (state.message for state in self.of_run(run_id)))
