"""Sums over all slow steps of a session by kind. They remain when slow steps are dropped. Without locks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tftracer.contract.stalls import OtherCause, Period, SlowKind, Stall, StallCause
from tftracer.slow.watch_results import OF_TRACER

#: Maximum number of kinds of one session; if there are more, the kind that lost the least time is dropped.
MAX_KINDS = 400

#: Causes that one piece of code may have: it runs, waits, or reads from a disk.
CODE_CAUSES: tuple[StallCause, ...] = ("python", "wait", "disk")

#: Causes that are identified by the name of a class, not by a line.
HOOK_CAUSES: tuple[StallCause, ...] = ("hook", "callback")

#: Causes that are code at a line. A slow step without a known line may belong to one of them.
HAS_CODE: tuple[StallCause, ...] = (*CODE_CAUSES, "gc", *HOOK_CAUSES, "py_function", "input")

#: Causes whose slow steps in a run are one group, whatever their lines.
PROCESS_CAUSES: tuple[StallCause, ...] = ("gc", "retrace", "checkpoint")

#: Causes that do not show that slow steps have anything in common, so they are listed separately.
UNSPECIFIC_CAUSES: tuple[StallCause, ...] = ("unknown", "machine")

#: Maximum number of lines that the place of a hook or callback names.
MAX_LINES = 3

#: Maximum number of files that the place of a hook or callback names, and what stands for further files.
MAX_FILES, OTHERS = 3, " and others"
#: A file with this share of a hook's or callback's seconds counts as its only one: a few samples may be from outside the turn.
IN_ONE_FILE = 0.9

#: (run, cause, place). The place has no line if lines do not matter: a save may be sampled at many lines.
KindKey = tuple[int, StallCause, str]


def kind_key(run_id: int, cause: StallCause, place: str) -> KindKey:
    if cause in UNSPECIFIC_CAUSES:
        return run_id, cause, ""
    return run_id, cause, place.partition(" (")[0] if cause in HOOK_CAUSES else place


def without_line(place: str) -> str:
    """Return "load() (train.py)" for "load() (train.py:31)". The top level of a script, lambdas and comprehensions keep
    their lines, because only the line identifies them.
    """
    return place if place.startswith("<") or ":" not in place else place.partition(":")[0] + ")"


def thread_and_code(place: str) -> tuple[str, str]:
    """Split the place of a lock: "thread loader", "main() (train.py:31)". The code is "" if its line is not known."""
    thread, _, code = place.partition(", in ")
    return thread, code


def group_key(entry: SlowKind | Stall | Period, gc_function: str = "") -> KindKey:
    """Return the key of the group of a kind, slow step or period. All causes in CODE_CAUSES of one function are one group.

    ``gc_function``: the function (without its line) whose garbage collections count as its own; "": none.
    """
    if entry["cause"] in PROCESS_CAUSES and not (
        entry["cause"] == "gc" and gc_function and without_line(entry["place"]) == gc_function
    ):
        return entry["run_id"], entry["cause"], ""  # one group, with and without known lines
    if entry["cause"] in (*CODE_CAUSES, "gc") and entry["place"]:
        return entry["run_id"], CODE_CAUSES[0], without_line(entry["place"])
    if entry["cause"] == "py_function":
        return entry["run_id"], entry["cause"], without_line(entry["place"])
    if entry["cause"] == "lock":
        thread, code = thread_and_code(entry["place"])
        return entry["run_id"], entry["cause"], thread if thread == OF_TRACER else without_line(code)
    return kind_key(entry["run_id"], entry["cause"], entry["place"])


def _both_lines(place: str, other: str) -> str:
    """Return a place with the lines of both, in one file: "Saver (train.py:35, 39)"; without lines if there are too many."""
    if place == other:
        return place
    name, colon, lines = place.rstrip(")").partition(":")
    together = list(dict.fromkeys(filter(None, [*lines.split(", "), *other.rstrip(")").partition(":")[2].split(", ")])))
    return f"{name}:{', '.join(together)})" if colon and len(together) <= MAX_LINES else f"{name})"


class Places:
    """The lines of one hook or callback in each file, with the seconds of its slow steps there."""

    def __init__(self, kind: SlowKind | None = None) -> None:
        """Begin with the lines of a kind, or with none. The kind's seconds are divided equally among its files."""
        self._by_file: dict[str, tuple[str, float]] = {}  # file -> (place with the lines in this file, seconds)
        self._has_others = False  # whether there are files that are not in ``_by_file``
        if kind is not None:
            name, _, files = kind["place"].rstrip(")").partition(" (")
            self._has_others = files.endswith(OTHERS)
            parts = files.removesuffix(OTHERS).split("; ")
            for lines in parts:
                self.add(f"{name} ({lines})" if lines else name, kind["duration_s"] / len(parts))

    def add(self, place: str, seconds: float) -> None:
        file = place.partition(" (")[2].rstrip(")").partition(":")[0]
        known, known_s = self._by_file.get(file, (place, 0.0))
        self._by_file[file] = (_both_lines(known, place), known_s + seconds)

    @property
    def text(self) -> str:
        """The lines in the file that has nearly all seconds: "Saver (train.py:35)"; those in each of the files that have most
        seconds: "Saver (train.py:35, 39; disk.py:7)"; "Saver" if no file is known."""
        known = [each for file, each in self._by_file.items() if file] or [*self._by_file.values()]
        known.sort(key=lambda each: -each[1])
        place, seconds = known[0]
        if seconds >= IN_ONE_FILE * sum(each for _, each in known):
            return place
        name, files = place.partition(" (")[0], [each.partition(" (")[2].rstrip(")") for each, _ in known]
        has_others = self._has_others or len(files) > MAX_FILES
        return f"{name} ({'; '.join(files[:MAX_FILES])}{OTHERS if has_others else ''})"


def lost_s(stall: Stall) -> float:
    """Return the seconds beyond the usual time."""
    return max(0.0, stall["duration_s"] - (stall["expected_s"] or 0.0))


def by_cause(stall: Stall) -> list[Stall]:
    """Return a slow step once for each of its causes, each with its own seconds. Together they have the slow step's duration."""
    others_s = sum(other["duration_s"] for other in stall["others"])
    own: Stall = {**stall, "duration_s": max(0.0, stall["duration_s"] - others_s)}
    return [own, *(with_cause(stall, other) for other in stall["others"])]


def with_cause(stall: Stall, other: OtherCause) -> Stall:
    """Return the slow step with its second cause as the only one."""
    return {**stall, **other, "expected_s": 0.0, "others": []}


class SlowKinds:
    """The sums over the slow steps of each kind."""

    def __init__(self) -> None:
        self._kinds: dict[KindKey, SlowKind] = {}
        self._places: dict[KindKey, Places] = {}

    def add(self, stall: Stall, period: Period | None = None) -> None:
        """Count a slow step. ``period``: the period that it belongs to, if its own cause or line is unknown."""
        explained: Stall | Period = period or stall
        key = kind_key(stall["run_id"], explained["cause"], explained["place"])
        before = self._kinds.pop(key, None)
        places = self._places.get(key) or Places(before)
        places.add(explained["place"], stall["duration_s"])
        steps = [step for step in (before and before["first_step"], before and before["last_step"], stall["step"]) if step]
        self._places[key] = places
        self._put(
            key,
            {
                "run_id": stall["run_id"],
                "cause": explained["cause"],
                "place": places.text,
                "where": stall["where"],
                "times": (before["times"] if before else 0) + 1,
                "duration_s": (before["duration_s"] if before else 0.0) + stall["duration_s"],
                "lost_s": (before["lost_s"] if before else 0.0) + lost_s(stall),
                "longest_s": max(before["longest_s"] if before else 0.0, stall["duration_s"]),
                "first_step": min(steps, default=None),
                "last_step": max(steps, default=None),
                "last_call": max((before and before["last_call"]) or 0, stall["call"]) or None,
                "last_at": max(before["last_at"] if before else 0.0, stall["started_at"]),
            },
        )

    def move(self, stall: Stall, period: Period, counted: Iterable[Stall]) -> None:
        """Move a slow step from its own kind to the kind of a period.

        ``counted``: the slow steps that stay with their own kinds.
        """
        key = kind_key(stall["run_id"], stall["cause"], stall["place"])
        kind = self._kinds.get(key)
        if kind is None or kind_key(stall["run_id"], period["cause"], period["place"]) == key:
            return
        self.add(stall, period)
        stay = [each for each in counted if kind_key(each["run_id"], each["cause"], each["place"]) == key]
        if kind["times"] <= 1 or not stay:
            self._remove(key)
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
        """Replace all kinds of a run."""
        for key in [key for key in self._kinds if key[0] == run_id]:
            self._remove(key)
        for kind in kinds:
            self._put(kind_key(run_id, kind["cause"], kind["place"]), kind)

    def _put(self, key: KindKey, kind: SlowKind) -> None:
        self._kinds[key] = kind
        if len(self._kinds) > MAX_KINDS:
            self._remove(min((each for each in self._kinds if each != key), key=lambda each: self._kinds[each]["lost_s"]))

    def _remove(self, key: KindKey) -> None:
        self._kinds.pop(key, None)
        self._places.pop(key, None)

    def garbage_collecting_function(self, run_id: int) -> str:
        """Return the function (without its line) whose garbage collections lost the most time, if its code also causes other slow
        steps; else "".
        """
        kinds, lost = self.of_run(run_id), Counter[str]()
        for kind in kinds:
            if kind["cause"] == "gc" and kind["place"]:
                lost[without_line(kind["place"])] += kind["lost_s"]  # type: ignore[assignment]
        place, place_s = lost.most_common(1)[0] if lost else ("", 0.0)
        is_code = any(kind["cause"] in CODE_CAUSES and without_line(kind["place"]) == place for kind in kinds)
        return place if is_code and 2 * place_s > sum(lost.values()) else ""

    def of_run(self, run_id: int) -> list[SlowKind]:
        return [kind for (owner, *_), kind in self._kinds.items() if owner == run_id]

    def all(self) -> Iterable[SlowKind]:
        return self._kinds.values()

    def copy(self) -> SlowKinds:
        """Return a copy that shares the kinds, because a kind is never changed, only replaced."""
        other = SlowKinds()
        other._kinds = self._kinds.copy()
        return other
