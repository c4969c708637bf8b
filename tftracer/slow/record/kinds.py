"""All slow steps of a session by kind, as sums: they stay when the slow steps themselves make way. Without threads."""

from __future__ import annotations

from collections.abc import Iterable

from tftracer.contract.stalls import Period, SlowKind, Stall, StallCause

#: Kinds of one session; those that cost least make way.
MOST_KINDS = 400

#: Causes that one piece of code has in turn: it runs, waits, and reads from a disk.
OF_CODE: tuple[StallCause, ...] = ("python", "wait", "disk")

#: Causes that are one for a whole run, whatever line they come at.
OF_PROCESS: tuple[StallCause, ...] = ("gc", "retrace")

#: Run, cause, and place without the line where a line tells nothing: a save may be seen in many.
KindKey = tuple[int, StallCause, str]


def kind_key(run_id: int, cause: StallCause, place: str) -> KindKey:
    if cause in ("unknown", "machine"):
        return run_id, cause, ""
    return run_id, cause, without_line(place) if cause in ("hook", "callback") else place


def without_line(place: str) -> str:
    """ "load() (train.py)" of "load() (train.py:31)"; a script's top level has nothing but its lines."""
    return place if place.startswith("<module>") or ":" not in place else place.partition(":")[0] + ")"


def key_of_stall(stall: Stall) -> KindKey:
    return kind_key(stall["run_id"], stall["cause"], stall["place"])


def group_key(one: SlowKind | Stall | Period) -> KindKey:
    """What the slow steps of one group have in common: the causes that one function's code has in turn belong together."""
    if one["cause"] in OF_PROCESS:  # whether or where its line was seen
        return one["run_id"], one["cause"], ""
    if one["cause"] in OF_CODE and one["place"]:
        return one["run_id"], OF_CODE[0], without_line(one["place"])
    return kind_key(one["run_id"], one["cause"], one["place"])


def lost_s(stall: Stall) -> float:
    """Seconds beyond the usual."""
    return max(0.0, stall["duration_s"] - (stall["expected_s"] or 0.0))


class SlowKinds:
    def __init__(self) -> None:
        self._kinds: dict[KindKey, SlowKind] = {}

    def add(self, stall: Stall) -> None:
        key = key_of_stall(stall)
        before = self._kinds.pop(key, None)
        known = [step for step in (before and before["first_step"], before and before["last_step"], stall["step"]) if step]
        self._put(
            key,
            {
                "run_id": stall["run_id"],
                "cause": stall["cause"],
                "place": stall["place"] if before is None or before["place"] == stall["place"] else key[2] or stall["place"],
                "where": stall["where"],
                "times": (before["times"] if before else 0) + 1,
                "duration_s": (before["duration_s"] if before else 0.0) + stall["duration_s"],
                "lost_s": (before["lost_s"] if before else 0.0) + lost_s(stall),
                "longest_s": max(before["longest_s"] if before else 0.0, stall["duration_s"]),
                "first_step": min(known, default=None),
                "last_step": max(known, default=None),
                "last_at": max(before["last_at"] if before else 0.0, stall["started_at"]),
            },
        )

    def put(self, kind: SlowKind) -> None:
        """Replaces what was known of this kind."""
        self._put(kind_key(kind["run_id"], kind["cause"], kind["place"]), kind)

    def _put(self, key: KindKey, kind: SlowKind) -> None:
        self._kinds[key] = kind
        if len(self._kinds) > MOST_KINDS:
            others = [each for each in self._kinds if each != key]
            del self._kinds[min(others, key=lambda each: self._kinds[each]["lost_s"])]

    def of_run(self, run_id: int) -> list[SlowKind]:
        return [kind for (owner, *_), kind in self._kinds.items() if owner == run_id]

    def all(self) -> Iterable[SlowKind]:
        return self._kinds.values()

    def copy(self) -> SlowKinds:
        """Kinds are replaced, never changed: copies share them."""
        other = SlowKinds()
        other._kinds = self._kinds.copy()
        return other
