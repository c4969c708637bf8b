"""Groups a run's slow steps by cause and place, and sorts the groups by the time lost in the whole run. No side effects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from tftracer.contract.stalls import Period, SlowGroup, SlowKind, Stall, StallCause
from tftracer.slow.answer import texts
from tftracer.slow.record.kept_slow_steps import Headline, SlowLog
from tftracer.slow.record.steps_of_periods import may_be_of
from tftracer.slow.record.sums_by_kind import (
    CODE_CAUSES,
    UNSPECIFIC_CAUSES,
    KindKey,
    by_cause,
    group_key,
    lost_s,
    thread_and_code,
    without_line,
)
from tftracer.trace.units import duration

#: Maximum number of lines of one function, or of places in several functions, that a group names.
MAX_PLACES = 3
#: A group names a place if at least this share of its slow steps has a known place.
MIN_PLACED = 0.5
#: A further cause of slow steps in the same code is named if at least this share of the lost time has this cause.
MIN_COST_SHARE = 0.2
#: A period of unknown cause is listed if at least this share of its slow steps has no known cause.
MIN_UNKNOWN_SHARE = 0.5
#: Slow steps of unknown cause that come within this many steps after slow steps of known cause count as their consequence: caches
#: are cold.
SOON = 3
#: Causes that a trace does not explain further.
NO_TRACE_NEEDED: tuple[StallCause, ...] = ("machine", "gc", "lock", "stopped")
#: Slow steps without a period count as ended if none came for this multiple of their mean distance, and for this share of the
#: run's steps.
DISTANCES, LONG = 10, 0.5

#: A headline is computed again when the number of the run's steps has grown by this factor: slow steps may have ended meanwhile.
STALE = 1.05

#: Groups with less than the share TRIFLE of the time that all slow steps lost come later, and the headline names none of
#: them. The headline gives a group's time if that is less than the share MOST.
TRIFLE, MOST = 0.01, 0.5

#: Step of a run -> id of its trace.
Traces = Mapping[int, int]
NO_TRACES: Traces = {}


class _Group(NamedTuple):
    kind: SlowKind
    causes: list[StallCause]  # the costliest first
    periods: list[Period]  # of the kind; a period of unknown cause has a separate group
    ended: bool
    stalls: list[Stall]  # its slow steps, except those that were dropped to make room for others
    placed: int  # number of its slow steps with a known place

    def rank(self, all_lost_s: float) -> tuple[bool, bool, bool, bool, float]:
        """Return the sort key. ``all_lost_s``: the seconds that all groups lost, except those of cause "machine"."""
        is_known, lost_s = bool(self.periods) or self.kind["cause"] != "unknown", self.kind["lost_s"]
        return self.kind["cause"] == "machine", not is_known, lost_s < TRIFLE * all_lost_s, self.ended, -lost_s

    @property
    def text(self) -> str:
        periods = [period for period in self.periods if period["next_step"] is not None] or self.periods
        by_length: dict[int, list[Period]] = {}
        for period in sorted(periods, key=lambda each: -each["times"]):
            same_length = by_length.setdefault(period["every"], [])
            if not any(_are_at_same_steps(period, each) for each in same_length):
                same_length.append(period)
        rhythms = {length: texts.Rhythm(len(each), max(map(_share, each))) for length, each in by_length.items()}
        return texts.group_text(self.causes, self._place, rhythms, self.kind["times"], self._regular, self.placed, self._has_all)

    @property
    def _place(self) -> str:
        """The place of its kind. If that names no line, the place of a period at the same code, which may name one."""
        place = self.kind["place"]
        return next((period["place"] for period in self.periods if without_line(period["place"]) == place), place)

    @property
    def _has_all(self) -> bool:
        """Whether none of its slow steps was dropped."""
        return len(self.stalls) == self.kind["times"]

    @property
    def _regular(self) -> int | None:
        """The number of its slow steps that come at the steps of a period; None if there is none, or if the number is not known.

        If slow steps were dropped, the number is estimated from the periods' own counts; some of these may have other causes.
        """
        if not self._has_all:
            counted = sum(period["times"] for period in self.periods)
            return counted if 0 < counted < self.kind["times"] else None
        return sum(any(may_be_of(stall, period) for period in self.periods) for stall in self.stalls) or None

    @property
    def _longest_s(self) -> float:
        """The duration of its longest slow step. If nearly all come at the steps of a period, of the longest of these."""
        kind, longest = self.kind, max((stall["duration_s"] for stall in self.stalls), default=0.0)
        if self.periods and kind["cause"] in UNSPECIFIC_CAUSES:  # a part of the slow steps of unknown cause
            return max(self.periods[0]["duration_s"], kind["lost_s"] / kind["times"], longest)
        at_periods = [stall for stall in self.stalls if any(may_be_of(stall, period) for period in self.periods)]
        if not at_periods or (self._regular or 0) < texts.MOSTLY * kind["times"]:
            return kind["longest_s"]
        return max(stall["duration_s"] for stall in at_periods)

    def group(self, traces: Traces) -> SlowGroup:
        kind = self.kind
        costliest = sorted(self.stalls, key=lambda stall: (-lost_s(stall), stall["id"]))
        active = {period["every"] for period in self.periods if period["next_step"] is not None}  # lengths of active periods
        return {
            "run_id": kind["run_id"],
            "cause": kind["cause"],
            "place": self._place,
            "where": kind["where"],
            "times": kind["times"],
            "lost_s": kind["lost_s"],
            "longest_s": self._longest_s,
            "last_step": kind["last_step"],
            "last_call": kind["last_call"],
            "last_text": self._step_text(kind["last_step"], kind["last_call"]),
            "periods": [
                {
                    **each,
                    "last_text": self._last_text(each),
                    "next_text": texts.next_text(each),
                }
                for each in self.periods
                if each["next_step"] is not None or each["every"] not in active
            ],
            "ended": self.ended,
            "stalls": [stall["id"] for stall in costliest],
            "trace_id": self.newest_trace(traces),
            "text": self.text,
        }

    def _last_text(self, period: Period) -> str:
        """Return a period's last step in words.

        If the group's only period has ended with a step of another cause, after the group's last step, return the group's last
        step instead.
        """
        kind = self.kind
        is_later = period["next_step"] is None and kind["last_step"] is not None and period["last_step"] > kind["last_step"]
        last = kind if is_later and len(self.periods) == 1 else period
        return self._step_text(last["last_step"], last["last_call"])

    def _step_text(self, step: int | None, call: int | None) -> str:
        """Return a step in words. If the slow step is kept, use its own number, which is None for a call of another signature."""
        kept = next((stall for stall in self.stalls if call and stall["call"] == call), None)
        step = kept["step"] if kept else step
        return texts.step_text(step, call) if step or call else ""

    @property
    def needs_trace(self) -> bool:
        """Whether a trace of one of its slow steps would explain more."""
        return self.kind["cause"] == "tensorflow" or (not self.kind["place"] and self.kind["cause"] not in NO_TRACE_NEEDED)

    def newest_trace(self, traces: Traces) -> int | None:
        if not self.needs_trace:
            return None
        return max((trace for stall in self.stalls if (trace := trace_of(stall, traces)) is not None), default=None)


def groups(log: SlowLog, run_id: int, steps: int, traces: Traces = NO_TRACES) -> list[SlowGroup]:
    """Return the groups of a run, the costliest first. Groups that have ended, lost little time, have an unknown cause, or have
    the cause "machine" come later, in this order.

    ``steps``: the number of the run's steps.
    """
    return [each.group(traces) for each in _sorted_groups(log, run_id, steps)[0]]


def _sorted_groups(log: SlowLog, run_id: int, steps: int) -> tuple[list[_Group], float]:
    """Return the groups of a run in their order, and the seconds that all of them lost, except those of cause "machine"."""
    unsorted = list(_unsorted_groups(log, run_id, steps))
    lost_s = sum(each.kind["lost_s"] for each in unsorted if each.kind["cause"] != "machine")
    return sorted(unsorted, key=lambda each: each.rank(lost_s)), lost_s


def _by_group(log: SlowLog, run_id: int, gc_function: str) -> dict[KindKey, list[Stall]]:
    """Return the slow steps of each group, except those that were dropped to make room for others.

    A slow step with several causes is in several groups, with the seconds of each.
    """
    by_group: dict[KindKey, list[Stall]] = {}
    periods = log.steps_of_periods(run_id)
    for stall in (stall for state in log.of_run(run_id) for stall in by_cause(state.message)):
        by_group.setdefault(group_key(periods.of_known_cause(stall) or stall, gc_function), []).append(stall)
    return by_group


def all_groups(log: SlowLog, traces: Mapping[int, Traces], steps_of: Callable[[int], int]) -> list[SlowGroup]:
    """Return the groups of all runs, run by run, the run with the most lost time first.

    ``traces``: run -> its traces. ``steps_of``: returns the number of a run's steps.
    """
    groups_of_runs = [groups(log, run_id, steps_of(run_id), run_traces) for run_id, run_traces in traces.items()]
    return [group for run_groups in sorted(groups_of_runs, key=lambda each: -_lost(each)) for group in run_groups]


def _lost(run_groups: Sequence[SlowGroup]) -> float:
    return sum(group["lost_s"] for group in run_groups if group["cause"] != "machine")


def headline(log: SlowLog, run_id: int, steps: int, traces: Traces) -> tuple[str, int | None]:
    """Return the text of the first group that is no trifle, or "", and the newest trace that explains more, or None.

    The text is shown after the time that all slow steps lost. If the group lost less than half of that time, the text also gives
    the group's time.

    This function is called five times a second, so it computes the text only if the slow steps or the traces have changed, or if
    the number of steps has grown (STALE).
    """
    known = log.headlines.get(run_id)
    if known is not None and steps <= STALE * known.steps and traces == known.traces:
        return known.text, known.trace_id
    text, trace_id = "", None
    ranked, without_machine_s = _sorted_groups(log, run_id, steps)
    if ranked:
        first = next((each for each in ranked if each.kind["lost_s"] >= TRIFLE * without_machine_s), ranked[0])
        lost_s, whole_s = first.kind["lost_s"], sum(each.kind["lost_s"] for each in ranked)
        text, trace_id = first.text, first.newest_trace(traces)
        if lost_s < MOST * whole_s:
            no_cpu_s = whole_s - without_machine_s
            without_cpu = f", and {duration(no_cpu_s * 1e9)} without a CPU" if no_cpu_s >= MOST * whole_s else ""
            text += f" ({duration(lost_s * 1e9)} of that{without_cpu})"
    log.headlines[run_id] = Headline(text, trace_id, steps, traces)
    return text, trace_id


def trace_of(stall: Stall, traces: Traces) -> int | None:
    """Return the trace of a slow step; None for the time before a step, which a trace does not show."""
    return traces.get(stall["step"]) if stall["step"] is not None and stall["where"] == "inside" else None


def _unsorted_groups(log: SlowLog, run_id: int, steps: int) -> Iterator[_Group]:
    """Yield the groups of a run. In a group of unspecific cause, the slow steps of each active period become a separate group."""
    periods_by_key: dict[KindKey, list[Period]] = {}
    sums, all_periods = log.kinds_of(run_id), log.periods_of(run_id)
    gc_function = sums.garbage_collecting_function(run_id)
    for period in all_periods:
        periods_by_key.setdefault(group_key(period, gc_function), []).append(period)
    kinds: dict[KindKey, list[SlowKind]] = {}
    for kind in sorted(sums.of_run(run_id), key=lambda each: -each["lost_s"]):
        kinds.setdefault(group_key(kind, gc_function), []).append(kind)
    by_group = _by_group(log, run_id, gc_function)
    for key, members in kinds.items():
        periods, kind = periods_by_key.get(key, []), reduce(_together, members)
        placed = sum(each["times"] for each in members if each["place"])
        kind = {**kind, "place": _common_place(members) if placed >= MIN_PLACED * kind["times"] else ""}
        group_stalls = by_group.get(key, [])
        has_all = len(group_stalls) == kind["times"]
        causes = [kind["cause"], *(cause for cause in (*CODE_CAUSES, "gc") if cause != kind["cause"] and _costs(members, cause))]
        if kind["cause"] not in UNSPECIFIC_CAUSES:
            yield _Group(kind, causes, periods, _is_over(kind, periods, steps), group_stalls, placed)
            continue
        for period in periods:
            if period["next_step"] is None or any(_follows(period, each) for each in all_periods):
                continue  # it has ended and may have been chance, or it is a consequence of a known cause
            at_its_steps = [stall for stall in group_stalls if may_be_of(stall, period)]
            listed = [stall for group in by_group.values() for stall in group if may_be_of(stall, period)]
            if listed and sum(stall["cause"] in UNSPECIFIC_CAUSES for stall in listed) < MIN_UNKNOWN_SHARE * len(listed):
                continue  # most of its listed slow steps have a known cause
            part = _of_period(kind, period, len(at_its_steps) if has_all else period["times"])
            if not part["times"] or part["times"] < MIN_UNKNOWN_SHARE * period["times"]:
                continue  # most of its slow steps belong to known kinds or to earlier periods
            group_stalls = [stall for stall in group_stalls if stall not in at_its_steps]
            kind = {
                **kind,
                "times": max(0, kind["times"] - part["times"]),
                "duration_s": max(0.0, kind["duration_s"] - part["duration_s"]),
                "lost_s": max(0.0, kind["lost_s"] - part["lost_s"]),
            }
            yield _Group(part, causes, [period], _is_over(part, [period], steps), at_its_steps, placed)
        if kind["times"]:
            yield _Group(kind, causes, [], _is_over(kind, [], steps), group_stalls, placed)


def _are_at_same_steps(one: Period, other: Period) -> bool:
    """Return whether two periods of one length have the same steps. If one has ended, assume that the other continues it."""
    off = (one["last_call"] - other["last_call"]) % one["every"]
    are_both_active = one["next_step"] is not None and other["next_step"] is not None
    return not are_both_active or min(off, one["every"] - off) <= one["tolerance"] + other["tolerance"]


def _share(period: Period) -> float:
    """Return the share of a period's expected steps that were slow, from 0 to 1; 1 if not known."""
    expected = 1 + (period["last_step"] - period["first_step"]) // period["every"] if period["first_step"] else 1
    return min(1.0, (period["times"] or expected) / max(1, expected))


def _costs(kinds: Sequence[SlowKind], cause: StallCause) -> bool:
    """Return whether a cause has a notable share (MIN_COST_SHARE) of the time that all these kinds lost."""
    return sum(kind["lost_s"] for kind in kinds if kind["cause"] == cause) >= max(
        1e-9, MIN_COST_SHARE * sum(kind["lost_s"] for kind in kinds)
    )


def _together(one: SlowKind, other: SlowKind) -> SlowKind:
    """Return the sum of two kinds. ``one``: the costlier one."""
    first = [kind["first_step"] for kind in (one, other) if kind["first_step"] is not None]
    last = [kind["last_step"] for kind in (one, other) if kind["last_step"] is not None]
    return {
        **one,
        "times": one["times"] + other["times"],
        "duration_s": one["duration_s"] + other["duration_s"],
        "lost_s": one["lost_s"] + other["lost_s"],
        "longest_s": max(one["longest_s"], other["longest_s"]),
        "first_step": min(first, default=None),
        "last_step": max(last, default=None),
        "last_call": max(one["last_call"] or 0, other["last_call"] or 0) or None,
        "last_at": max(one["last_at"], other["last_at"]),
    }


def _common_place(kinds: Sequence[SlowKind]) -> str:
    """Return the common place of some kinds with its lines, the costliest first; "" if there are too many places.

    A slow step without a known line may have been at one of these lines. For a lock, the place is the thread that held it.
    """
    places = list(dict.fromkeys(kind["place"] for kind in kinds if kind["place"]))
    if len(places) > 1 and kinds[0]["cause"] == "lock":
        threads, codes = map(set, zip(*map(thread_and_code, places)))
        thread = threads.pop() if len(threads) == 1 else "other threads"
        code = codes.pop() if len(codes) == 1 else without_line(codes.pop())  # one group has one function
        return f"{thread}, in {code}" if code else thread
    if len({without_line(place) for place in places}) == 1:
        lines = [place.partition(":")[2].rstrip(")") for place in places]
        listed = ", ".join(filter(None, lines[:MAX_PLACES])) + " and others" * (len(lines) > MAX_PLACES)
        return f"{without_line(places[0])[:-1]}:{listed})" if len(lines) > 1 else places[0]
    is_cause_there = kinds[0]["cause"] != "gc"  # a collection may begin wherever objects are made
    return " and ".join(places) if is_cause_there and len(places) <= MAX_PLACES else ""


def _of_period(kind: SlowKind, period: Period, times: int) -> SlowKind:
    """Return the sums of a period of unknown cause, estimated from its median and the usual time of its kind.

    ``times``: number of its slow steps that belong to no known kind.
    """
    usual = (kind["duration_s"] - kind["lost_s"]) / max(kind["times"], 1)
    times = min(times, kind["times"])
    return {
        **kind,
        "where": period["where"],
        "place": period["place"],
        "times": times,
        "duration_s": min(period["duration_s"] * times, kind["duration_s"]),
        "lost_s": min(max(0.0, period["duration_s"] - usual) * times, kind["lost_s"]),
        "first_step": period["first_step"] or None,
        "last_step": period["last_step"],
        "last_call": period["last_call"] or None,
    }


def _follows(period: Period, known: Period) -> bool:
    """Return whether ``known`` has a known cause and the slow steps of ``period`` come soon after its slow steps."""
    after = (period["last_call"] - known["last_call"]) % known["every"]
    return known["cause"] not in UNSPECIFIC_CAUSES and period["every"] == known["every"] and after <= SOON + known["tolerance"]


def _is_over(kind: SlowKind, periods: Sequence[Period], steps: int) -> bool:
    """Return whether the slow steps of a group have ended. ``steps``: the number of the run's steps."""
    if periods:
        return all(period["next_step"] is None for period in periods)
    first, last = kind["first_step"], kind["last_step"]
    if first is None or last is None:
        return False
    distance = (last - first) / max(kind["times"] - 1, 1)
    return steps - last > max(DISTANCES * distance, LONG * steps)
