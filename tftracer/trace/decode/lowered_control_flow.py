"""The nodes that TensorFlow puts in the place of a branch or a loop when it runs one: Switch, Merge, Enter, Exit and their kin.

They are named after the If or While: ``loop/merge/_21``, ``branch/switch_pred/_2``. Of what they read only that is told which the
names tell for certain: which of a loop's variables a Merge is for they do not, unless each has one.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

_LOWERED = re.compile(r"(?P<path>.+)/_(?P<number>\d{1,9})")
_INPUT = re.compile(r".+/(input|output|output_control_node)/_\d+(/_\d+)?")  # what follows the name of the loop, and /Func/
_LOOP = {"enter": "Enter", "merge": "Merge", "next_iteration": "NextIteration", "exit": "Exit", "LoopCond": "LoopCond"}
#: Name scopes of a node that are looked at for the branch or loop that it belongs to.
_MAX_SCOPES = 200


def lowered(
    names: Iterable[str], ops: Mapping[str, str], read_by: Mapping[str, list[str]], variable: str, result: str
) -> dict[str, tuple[str, list[str]]]:
    """name -> (op, what it reads) of those of the names that stand in the place of a branch or loop.

    ops, read_by: of the nodes of the graph. variable, result: what stands between a loop's or a branch's name and the number of
    its variable or result in ``read_by``. Several names may share one list.
    """
    parts: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    lowered: dict[str, tuple[str, list[str]]] = {}
    for name in names:
        caller, _, inlined = name.rpartition("/Func/")
        of = _LOWERED.fullmatch(name)
        if ops.get(caller) and _INPUT.fullmatch(inlined):
            lowered[name] = ("Identity", [])
        elif of and (place := _branch_or_loop(of["path"], ops)):
            parts[place, of["path"][len(place) + 1 :]].append((int(of["number"]), name))
    for numbered in parts.values():
        numbered.sort()
    places = _Places(parts, read_by, variable, result)
    for (place, part), numbered in parts.items():
        is_branch = ops[place].endswith("If")
        reads = places.of_branch(place, part, len(numbered)) if is_branch else places.of_loop(place, part, len(numbered))
        op = _op(part, is_branch)
        lowered.update((name, (op, one)) for (_, name), one in zip(numbered, reads))
    return lowered


def _branch_or_loop(path: str, ops: Mapping[str, str]) -> str:
    """The one that a node stands in the place of: ``loop`` of ``loop/merge``, of ``loop/scope/variable_switch``; "" for none."""
    place = path
    for _ in range(_MAX_SCOPES):
        place = place.rpartition("/")[0]
        if not place or ops.get(place, "").endswith(("If", "While")):
            return place
    return ""


def _op(part: str, is_branch: bool) -> str:
    if is_branch:
        return "Merge" if part in ("output", "branch_executed") else "Identity" if part.startswith("pivot_") else "Switch"
    return _LOOP.get(part, "Switch")


class _Places:
    """What the nodes of a branch or loop read. A place may have any number of parts: what they share is made once."""

    def __init__(
        self, parts: Mapping[tuple[str, str], list[tuple[int, str]]], read_by: Mapping[str, list[str]], variable: str, result: str
    ) -> None:
        self._parts = parts  # (place, part) -> (number, name), sorted
        self._read_by = read_by
        self._variable, self._result = variable, result
        self._names = functools.cache(self._find_names)
        self._numbered = functools.cache(self._find_numbered)

    def of_branch(self, place: str, part: str, count: int) -> list[list[str]]:
        if part == "output":
            return _one_each(self._numbered(place, self._result), count)
        return [self._read_by[place][:1] if part == "switch_pred" else self._names(place, "switch_pred")] * count

    def of_loop(self, place: str, part: str, count: int) -> list[list[str]]:
        if part in ("enter", "next_iteration"):
            one = slice(0, 1) if part == "enter" else slice(1, None)
            return _one_each([variable[one] for variable in self._numbered(place, self._variable)], count)
        if part == "LoopCond":
            return [self._read_by.get(f"{place}{self._result}cond", [])] * count
        for target, of in (("merge", "enter"), ("exit", "merge")):
            before = self._names(place, of)
            if part == target and len(before) == count:
                return [[one] for one in before]
        return [self._names(place, "LoopCond") if part not in ("merge", "exit") else []] * count

    def _find_numbered(self, place: str, kind: str) -> list[list[str]]:
        numbered: list[list[str]] = []
        while (reads := self._read_by.get(f"{place}{kind}{len(numbered)}")) is not None:
            numbered.append(reads)
        return numbered

    def _find_names(self, place: str, part: str) -> list[str]:
        return [f"{name}:0" for _, name in self._parts.get((place, part), [])]


def _one_each(reads: list[list[str]], count: int) -> list[list[str]]:
    return reads if len(reads) == count else [[] for _ in range(count)]
