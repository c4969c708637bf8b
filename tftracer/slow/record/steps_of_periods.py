"""Finds the period that a slow step belongs to. No side effects."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence

from tftracer.contract.stalls import CodeLine, Period, Stall
from tftracer.slow.cause.equal_distances import is_tooth
from tftracer.slow.record.sums_by_kind import (
    CODE_CAUSES,
    HAS_CODE,
    UNSPECIFIC_CAUSES,
    by_cause,
    group_key,
    with_cause,
    without_line,
)

#: A slow step counts as one of a period if it takes at least SHORT times as long as the period's steps. If its time was seen in a
#: function that the period's function seems to call, it must take at most LONG times as long: otherwise it does other work, too.
SHORT, LONG = 0.5, 2.0


def may_be_of(stall: Stall, period: Period) -> bool:
    """Return whether a slow step comes at a step of a period. With short distances this may be by chance."""
    step, is_active = stall["step"], period["next_step"] is not None
    at = stall["call"] or step
    if not at or (step and step < period["first_step"] - period["tolerance"]):
        return False
    distance = at - (period["last_call"] or period["last_step"])
    is_on_time = is_tooth(distance, period["every"], period["tolerance"])
    return is_on_time and (is_active or distance <= period["tolerance"])


def _has_cause(stall: Stall, period: Period) -> bool:
    return stall["cause"] not in UNSPECIFIC_CAUSES and group_key(stall) == group_key(period)


class StepsOfPeriods:
    """Finds the periods of slow steps of one run."""

    def __init__(self, periods: Sequence[Period], stalls: Callable[[], Iterable[Stall]]) -> None:
        """``stalls``: returns the run's slow steps that are kept. Called only if a period has a tolerance."""
        self._periods = periods
        self._stalls = stalls
        self._calls: dict[int, list[int]] = {}  # index of a period with a tolerance -> its calls

    def period_of(self, stall: Stall) -> Period | None:
        """Return the period that a slow step belongs to; None if there is none."""
        return next((each for each in self._periods if self._is_one_of(stall, each)), None) or self.of_known_cause(stall)

    def of_known_cause(self, stall: Stall) -> Period | None:
        """Return the period with a known cause to which a slow step of unknown cause or line belongs; None if there is none.

        A slow step in a function that the period's function calls also belongs to it, if stacks of the step show both: by chance,
        half of its time may be in the key function of a sort, or below it. But if two periods fall together, the step belongs to
        the period of its own cause. A step of which a second cause is the period's counts with that cause only.
        """
        shortest_s, periods = 0.0, self._periods
        if stall["cause"] == "unknown":  # a step and the time before it have different causes
            known = [each for each in periods if each["cause"] not in UNSPECIFIC_CAUSES and each["where"] == stall["where"]]
        elif stall["cause"] == "tensorflow" and not stall["place"]:  # few samples may have missed the function
            known = [each for each in periods if each["cause"] in ("py_function", "input") and each["where"] == "inside"]
        elif stall["cause"] == "input":  # its line only takes the element; few samples may have missed the function that made it
            if any(self._is_one_of(stall, each) for each in periods):
                return None
            known = [each for each in periods if each["cause"] in ("input", "py_function") and each["place"]]
        elif stall["cause"] in CODE_CAUSES and not stall["place"]:
            known = [each for each in periods if each["cause"] in HAS_CODE and each["place"]]
        elif stall["cause"] in CODE_CAUSES:
            own, seen = without_line(stall["place"]), {_place_of(line) for line in stall["lines"]}
            if any(self._is_one_of(stall, each) for each in periods):
                return None
            shortest_s = stall["duration_s"] / LONG
            known = [
                each
                for each in periods
                if each["cause"] in CODE_CAUSES
                and each["where"] == stall["where"]
                and without_line(each["place"]) in seen - {own}
            ]
        else:
            return None
        known = [each for each in known if not any(self._is_one_of(with_cause(stall, other), each) for other in stall["others"])]
        return next((each for each in known if self._is_due(stall, each) and shortest_s <= each["duration_s"]), None)

    def _is_one_of(self, stall: Stall, period: Period) -> bool:
        """Return whether a slow step belongs to a period: it comes at the steps of the period, and has the same kind if both
        kinds are known."""
        if stall["cause"] not in UNSPECIFIC_CAUSES:
            return _has_cause(stall, period) and may_be_of(stall, period)
        if stall["where"] != period["where"]:
            return False
        is_exact = not period["tolerance"] or period["cause"] in UNSPECIFIC_CAUSES
        if is_exact or any(_has_cause(with_cause(stall, other), period) for other in stall["others"]):
            return may_be_of(stall, period)
        return self._is_due(stall, period)

    def _is_due(self, stall: Stall, period: Period) -> bool:
        """Return whether a slow step with another cause comes at a step of a period and is at least SHORT times as long.

        With a tolerance, several slow steps may be at one tooth. So the step must come when the period's next step was due,
        judging by the slow steps of the period's cause before and after it, and none of these may be at the same tooth.
        """
        if period["duration_s"] > stall["duration_s"] / SHORT or not may_be_of(stall, period):
            return False
        if not period["tolerance"]:
            return True
        calls, at, length = self._calls_of(period), stall["call"] or stall["step"] or 0, period["every"]
        nearest = [*calls[: bisect_left(calls, at)][-1:], *calls[bisect_right(calls, at) :][:1]]
        if at in calls or any(abs(call - at) <= 2 * period["tolerance"] for call in nearest):
            return False
        last = period["last_call"] or period["last_step"]
        offsets = [(at - call + length // 2) % length - length // 2 for call in nearest or [last]]
        return min(offsets) <= 0 <= max(offsets)

    def _calls_of(self, period: Period) -> list[int]:
        """Return the calls at which a period's slow steps have its cause, in order."""
        index = next(index for index, each in enumerate(self._periods) if each is period)
        if index not in self._calls:
            stalls = (each for stall in self._stalls() for each in by_cause(stall))
            calls = {each["call"] or each["step"] or 0 for each in stalls if _has_cause(each, period) and may_be_of(each, period)}
            self._calls[index] = sorted(calls)
        return self._calls[index]


def _place_of(line: CodeLine) -> str:
    """Return the place of a line without the line's number."""
    return f"{line['function']}() ({line['file'].rpartition('/')[2]})"
