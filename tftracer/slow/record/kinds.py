"""All slow steps of a session by kind, as sums: they stay when the slow steps themselves make way. Without threads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tftracer.contract.stalls import Period, SlowKind, Stall, StallCause

#: Kinds of one session; those that cost least make way.
MOST_KINDS = 400

#: Causes that one piece of code has in turn: it runs, waits, and reads from a disk.
OF_CODE: tuple[StallCause, ...] = ("python", "wait", "disk")

#: Causes that are an object with a name: it stays the same whichever of its lines was seen.
OWNED: tuple[StallCause, ...] = ("hook", "callback")

#: Causes that are code at a line: what was seen to run or wait at no line may be it.
HAS_CODE: tuple[StallCause, ...] = (*OF_CODE, "gc", *OWNED, "py_function")

#: Causes that are one for a whole run, whatever line they come at.
OF_PROCESS: tuple[StallCause, ...] = ("gc", "retrace", "input", "checkpoint")

#: Causes that tell nothing of what slow steps have in common: they are listed apart.
APART: tuple[StallCause, ...] = ("unknown", "machine")

#: Run, cause, and place without the line where a line tells nothing: a save may be seen in many.
KindKey = tuple[int, StallCause, str]


def kind_key(run_id: int, cause: StallCause, place: str) -> KindKey:
    if cause in APART:
        return run_id, cause, ""
    return run_id, cause, place.partition(" (")[0] if cause in OWNED else place


def without_line(place: str) -> str:
    """ "load() (train.py)" of "load() (train.py:31)"; a script's top level, lambdas and comprehensions have nothing but their
    lines."""
    return place if place.startswith("<") or ":" not in place else place.partition(":")[0] + ")"


def thread_and_code(place: str) -> tuple[str, str]:
    """Split the place of a lock: "thread loader", "main() (train.py:31)". The code is "" if its line is not known."""
    thread, _, code = place.partition(", in ")
    return thread, code


def group_key(one: SlowKind | Stall | Period, collecting: str = "") -> KindKey:
    """What the slow steps of one group have in common: the causes that one function's code has in turn belong together.

    ``collecting``: the function whose code makes the garbage that is collected in it, without its line; "": none.
    """
    if one["cause"] in OF_PROCESS and not (one["cause"] == "gc" and collecting and without_line(one["place"]) == collecting):
        return one["run_id"], one["cause"], ""  # whether or where its line was seen
    if one["cause"] in (*OF_CODE, "gc") and one["place"]:
        return one["run_id"], OF_CODE[0], without_line(one["place"])
    if one["cause"] == "lock":
        return one["run_id"], one["cause"], without_line(thread_and_code(one["place"])[1])
    return kind_key(one["run_id"], one["cause"], one["place"])


def may_be_of(stall: Stall, period: Period) -> bool:
    """Whether a slow step is one of a period's, as far as its time and length tell. A short one on its teeth may be chance's."""
    step, stands = stall["step"], period["next_step"] is not None
    if not step or step < period["first_step"] - period["tolerance"]:
        return False
    off = ((stall["call"] or step) - (period["last_call"] or period["last_step"])) % period["every"]
    is_on_time = min(off, period["every"] - off) <= period["tolerance"]
    return is_on_time and (stands or step <= period["last_step"] + period["tolerance"])


def of_known_period(stall: Stall, periods: Iterable[Period]) -> Period | None:
    """Of which one with a known cause a slow step is whose own cause, or the line of its code, is not known."""
    if stall["cause"] == "unknown":
        known = [period for period in periods if period["cause"] not in APART]
    elif stall["cause"] in OF_CODE and not stall["place"]:
        known = [period for period in periods if period["cause"] in HAS_CODE and period["place"]]
    else:
        return None
    return next((each for each in known if may_be_of(stall, each) and 2 * stall["duration_s"] >= each["duration_s"]), None)


def lost_s(stall: Stall) -> float:
    """Seconds beyond the usual."""
    return max(0.0, stall["duration_s"] - (stall["expected_s"] or 0.0))


class SlowKinds:
    def __init__(self) -> None:
        self._kinds: dict[KindKey, SlowKind] = {}

    def add(self, stall: Stall, of: Stall | Period | None = None) -> None:
        """``of``: the period that a slow step of unknown cause or line is one of."""
        of = of or stall
        key = kind_key(stall["run_id"], of["cause"], of["place"])
        before = self._kinds.pop(key, None)
        known = [step for step in (before and before["first_step"], before and before["last_step"], stall["step"]) if step]
        self._put(
            key,
            {
                "run_id": stall["run_id"],
                "cause": of["cause"],
                "place": of["place"] if before is None or before["place"] == of["place"] else key[2] or of["place"],
                "where": stall["where"],
                "times": (before["times"] if before else 0) + 1,
                "duration_s": (before["duration_s"] if before else 0.0) + stall["duration_s"],
                "lost_s": (before["lost_s"] if before else 0.0) + lost_s(stall),
                "longest_s": max(before["longest_s"] if before else 0.0, stall["duration_s"]),
                "first_step": min(known, default=None),
                "last_step": max(known, default=None),
                "last_call": max((before and before["last_call"]) or 0, stall["call"]) or None,
                "last_at": max(before["last_at"] if before else 0.0, stall["started_at"]),
            },
        )

    def move(self, stall: Stall, period: Period, others: Iterable[Stall]) -> None:
        """Count a slow step as one of a period's after all. ``others``: those of kinds of their own."""
        key = kind_key(stall["run_id"], stall["cause"], stall["place"])
        kind = self._kinds.get(key)
        if kind is None or kind_key(stall["run_id"], period["cause"], period["place"]) == key:
            return
        self.add(stall, period)
        stay = [each for each in others if kind_key(each["run_id"], each["cause"], each["place"]) == key]
        if kind["times"] <= 1 or not stay:
            self._kinds.pop(key, None)
            return
        steps = [each["step"] for each in stay if each["step"]]
        self._kinds[key] = {
            **kind,
            "times": kind["times"] - 1,
            "duration_s": max(0.0, kind["duration_s"] - stall["duration_s"]),
            "lost_s": max(0.0, kind["lost_s"] - lost_s(stall)),
            "longest_s": max(each["duration_s"] for each in stay),
            "first_step": min(steps, default=None),
            "last_step": max(steps, default=None),
            "last_call": max(each["call"] for each in stay) or None,
            "last_at": max(each["started_at"] for each in stay),
        }

    def replace(self, run_id: int, kinds: Iterable[SlowKind]) -> None:
        """All kinds of a run."""
        for key in [key for key in self._kinds if key[0] == run_id]:
            del self._kinds[key]
        for kind in kinds:
            self.put(kind)

    def put(self, kind: SlowKind) -> None:
        """Replaces what was known of this kind."""
        self._put(kind_key(kind["run_id"], kind["cause"], kind["place"]), kind)

    def _put(self, key: KindKey, kind: SlowKind) -> None:
        self._kinds[key] = kind
        if len(self._kinds) > MOST_KINDS:
            others = [each for each in self._kinds if each != key]
            del self._kinds[min(others, key=lambda each: self._kinds[each]["lost_s"])]

    def collecting(self, run_id: int) -> str:
        """The function, without its line, in which most collections ran whose line was seen, if its code made others slow by
        itself; else ""."""
        kinds, lost = self.of_run(run_id), Counter[str]()
        for kind in kinds:
            if kind["cause"] == "gc" and kind["place"]:
                lost[without_line(kind["place"])] += kind["lost_s"]  # type: ignore[assignment]
        place, most = lost.most_common(1)[0] if lost else ("", 0.0)
        is_code = any(kind["cause"] in OF_CODE and without_line(kind["place"]) == place for kind in kinds)
        return place if is_code and 2 * most > sum(lost.values()) else ""

    def of_run(self, run_id: int) -> list[SlowKind]:
        return [kind for (owner, *_), kind in self._kinds.items() if owner == run_id]

    def all(self) -> Iterable[SlowKind]:
        return self._kinds.values()

    def copy(self) -> SlowKinds:
        """Kinds are replaced, never changed: copies share them."""
        other = SlowKinds()
        other._kinds = self._kinds.copy()
        return other
