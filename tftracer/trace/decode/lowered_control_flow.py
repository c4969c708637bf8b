"""The nodes by which TensorFlow replaces a branch or a loop when it runs one: Switch, Merge, Enter, Exit and similar ops.

They are named after the If or While: ``loop/merge/_21``, ``branch/switch_pred/_2``. Inputs are given only where the names prove
them: a name does not say which of a loop's variables a Merge belongs to, unless every variable has a Merge.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

_LOWERED = re.compile(r"(?P<path>.+)/_(?P<number>\d{1,9})")
_INPUT = re.compile(r".+/(input|output|output_control_node)/_\d+(/_\d+)?")  # the part of a name after the caller and /Func/
_LOOP = {"enter": "Enter", "merge": "Merge", "next_iteration": "NextIteration", "exit": "Exit", "LoopCond": "LoopCond"}
#: The search for a node's branch or loop ends after this many name scopes.
_MAX_SCOPES = 200


def lowered(
    names: Iterable[str], ops: Mapping[str, str], read_by: Mapping[str, list[str]], variable: str, result: str
) -> dict[str, tuple[str, list[str]]]:
    """Return name -> (op, inputs) of the names that replace a branch or loop.

    ops, read_by: the op and the inputs of each node of the graph. variable, result: the text between the name of a loop or branch
    and the number of its variable or result in ``read_by``. Several names may share one list of inputs.
    """
    parts: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    lowered: dict[str, tuple[str, list[str]]] = {}
    for name in names:
        caller, _, inlined = name.rpartition("/Func/")
        match = _LOWERED.fullmatch(name)
        if ops.get(caller) and _INPUT.fullmatch(inlined):
            lowered[name] = ("Identity", [])
        elif match and (place := _branch_or_loop(match["path"], ops)):
            parts[place, match["path"][len(place) + 1 :]].append((int(match["number"]), name))
    for numbered in parts.values():
        numbered.sort()
    places = _Places(parts, read_by, variable, result)
    for (place, part), numbered in parts.items():
        is_branch = ops[place].endswith("If")
        reads = places.of_branch(place, part, len(numbered)) if is_branch else places.of_loop(place, part, len(numbered))
        op = _op(part, is_branch)
        lowered.update((name, (op, inputs)) for (_, name), inputs in zip(numbered, reads))
    return lowered


def _branch_or_loop(path: str, ops: Mapping[str, str]) -> str:
    """Return the branch or loop that a node replaces: ``loop`` for ``loop/merge`` and ``loop/scope/switch``; "" if none."""
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
    """The inputs of the nodes of branches and loops. A place may have any number of parts: shared lists are built once."""

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
            inputs = slice(0, 1) if part == "enter" else slice(1, None)
            return _one_each([variable[inputs] for variable in self._numbered(place, self._variable)], count)
        if part == "LoopCond":
            return [self._read_by.get(f"{place}{self._result}cond", [])] * count
        for target, producing_part in (("merge", "enter"), ("exit", "merge")):
            producers = self._names(place, producing_part)
            if part == target and len(producers) == count:
                return [[producer] for producer in producers]
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
