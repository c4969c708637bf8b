"""The nodes that TensorFlow runs in place of an If or a While: Switch, Merge, Enter, Exit and similar ops.

They are named after the If or While (here called their owner): ``loop/merge/_21``, ``branch/switch_pred/_2``. Inputs are given
only where the names show them: if some variable of a loop has no Merge, the names do not say to which variables the Merges
belong.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

_LOWERED = re.compile(r"(?P<path>.+)/_(?P<number>\d{1,9})")
_INPUT = re.compile(r".+/(input|output|output_control_node)/_\d+(/_\d+)?")  # the part of a name after the caller and /Func/
_LOOP = {"enter": "Enter", "merge": "Merge", "next_iteration": "NextIteration", "exit": "Exit", "LoopCond": "LoopCond"}
#: The search for a node's owner ends after this many name scopes.
_MAX_SCOPES = 200


def lowered(
    names: Iterable[str], ops: Mapping[str, str], inputs_of: Mapping[str, list[str]], variable: str, result: str
) -> dict[str, tuple[str, list[str]]]:
    """Return name -> (op, inputs) of the nodes that replace an If or While.

    ``ops``, ``inputs_of``: the op and the inputs of each node of the graph. ``variable``, ``result``: in keys of ``inputs_of``,
    the text between an owner's name and the number of its variable or result. Several names may share one list of inputs.
    """
    parts: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    lowered: dict[str, tuple[str, list[str]]] = {}
    for name in names:
        caller, _, inlined = name.rpartition("/Func/")
        match = _LOWERED.fullmatch(name)
        if ops.get(caller) and _INPUT.fullmatch(inlined):
            lowered[name] = ("Identity", [])
        elif match and (owner := _branch_or_loop(match["path"], ops)):
            parts[owner, match["path"][len(owner) + 1 :]].append((int(match["number"]), name))
    for numbered in parts.values():
        numbered.sort()
    inputs_of_parts = _InputsOfParts(parts, inputs_of, variable, result)
    for (owner, part), numbered in parts.items():
        is_branch = ops[owner].endswith("If")
        inputs_of_nodes = (
            inputs_of_parts.of_branch(owner, part, len(numbered))
            if is_branch
            else inputs_of_parts.of_loop(owner, part, len(numbered))
        )
        op = _op(part, is_branch)
        lowered.update((name, (op, inputs)) for (_, name), inputs in zip(numbered, inputs_of_nodes))
    return lowered


def _branch_or_loop(path: str, ops: Mapping[str, str]) -> str:
    """Return the If or While that a node replaces: ``loop`` for ``loop/merge`` and ``loop/scope/switch``; "" if none."""
    owner = path
    for _ in range(_MAX_SCOPES):
        owner = owner.rpartition("/")[0]
        if not owner or ops.get(owner, "").endswith(("If", "While")):
            return owner
    return ""


def _op(part: str, is_branch: bool) -> str:
    if is_branch:
        return "Merge" if part in ("output", "branch_executed") else "Identity" if part.startswith("pivot_") else "Switch"
    return _LOOP.get(part, "Switch")


class _InputsOfParts:
    """Finds the inputs of the nodes of branches and loops. An owner may have any number of parts: shared lists are built once."""

    def __init__(
        self,
        parts: Mapping[tuple[str, str], list[tuple[int, str]]],
        inputs_of: Mapping[str, list[str]],
        variable: str,
        result: str,
    ) -> None:
        self._parts = parts  # (owner, part) -> (number, name), sorted
        self._inputs_of = inputs_of
        self._variable, self._result = variable, result
        self._names = functools.cache(self._find_names)
        self._numbered = functools.cache(self._find_numbered)

    def of_branch(self, owner: str, part: str, count: int) -> list[list[str]]:
        if part == "output":
            return _if_count_matches(self._numbered(owner, self._result), count)
        return [self._inputs_of[owner][:1] if part == "switch_pred" else self._names(owner, "switch_pred")] * count

    def of_loop(self, owner: str, part: str, count: int) -> list[list[str]]:
        if part in ("enter", "next_iteration"):
            inputs = slice(0, 1) if part == "enter" else slice(1, None)
            return _if_count_matches([variable[inputs] for variable in self._numbered(owner, self._variable)], count)
        if part == "LoopCond":
            return [self._inputs_of.get(f"{owner}{self._result}cond", [])] * count
        for target, producing_part in (("merge", "enter"), ("exit", "merge")):
            producers = self._names(owner, producing_part)
            if part == target and len(producers) == count:
                return [[producer] for producer in producers]
        return [self._names(owner, "LoopCond") if part not in ("merge", "exit") else []] * count

    def _find_numbered(self, owner: str, kind: str) -> list[list[str]]:
        numbered: list[list[str]] = []
        while (inputs := self._inputs_of.get(f"{owner}{kind}{len(numbered)}")) is not None:
            numbered.append(inputs)
        return numbered

    def _find_names(self, owner: str, part: str) -> list[str]:
        return [f"{name}:0" for _, name in self._parts.get((owner, part), [])]


def _if_count_matches(reads: list[list[str]], count: int) -> list[list[str]]:
    """Return ``reads`` if it has ``count`` entries; else as many empty lists."""
    return reads if len(reads) == count else [[] for _ in range(count)]
