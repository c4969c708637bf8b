"""The nodes that TensorFlow puts in the place of a branch or a loop when it runs one: Switch, Merge, Enter, Exit and their kin.

They are named after the If or While: ``loop/merge/_21``, ``branch/switch_pred/_2``. Of what they read only that is told which the
names tell for certain: which of a loop's variables a Merge is for they do not, unless each has one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping

_LOWERED = re.compile(r"(?P<path>.+)/_(?P<number>\d+)")
_INPUT = re.compile(r"(?P<place>.+)/Func/.+/(?P<part>input|output|output_control_node)/_\d+(/_\d+)?")
_LOOP = {"enter": "Enter", "merge": "Merge", "next_iteration": "NextIteration", "exit": "Exit", "LoopCond": "LoopCond"}
#: Op of a node, and the names of what it reads.
Node = "tuple[str, list[str]]"


def lowered(
    names: Iterable[str], ops: Mapping[str, str], read_by: Mapping[str, list[str]], variable: str, result: str
) -> dict[str, tuple[str, list[str]]]:
    """name -> (op, what it reads) of those of the names that stand in the place of a branch or loop.

    ops, read_by: of the nodes of the graph. variable, result: what stands between a loop's or a branch's name and the number of
    its variable or result in ``read_by``.
    """
    parts: defaultdict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    lowered: dict[str, tuple[str, list[str]]] = {}
    for name in names:
        inlined, of = _INPUT.fullmatch(name), _LOWERED.fullmatch(name)
        if inlined and ops.get(inlined["place"]):
            lowered[name] = ("Identity", [])
        elif of and (place := _branch_or_loop(of["path"], ops)):
            parts[place, of["path"][len(place) + 1 :]].append((int(of["number"]), name))
    for (place, part), numbered in parts.items():
        each = [name for _, name in sorted(numbered)]
        of_kind = _of_branch if ops[place].endswith("If") else _of_loop
        reads = of_kind(place, part, each, parts, read_by, variable, result)
        op = _op(part, ops[place].endswith("If"))
        lowered.update((name, (op, one)) for name, one in zip(each, reads))
    return lowered


def _branch_or_loop(path: str, ops: Mapping[str, str]) -> str:
    """The one that a node stands in the place of: ``loop`` of ``loop/merge``, of ``loop/scope/variable_switch``; "" for none."""
    place = path.rpartition("/")[0]
    while place and not ops.get(place, "").endswith(("If", "While")):
        place = place.rpartition("/")[0]
    return place


def _op(part: str, is_branch: bool) -> str:
    if is_branch:
        return "Merge" if part in ("output", "branch_executed") else "Identity" if part.startswith("pivot_") else "Switch"
    return _LOOP.get(part, "Switch")


Parts = Mapping["tuple[str, str]", "list[tuple[int, str]]"]


def _of_branch(
    place: str, part: str, each: list[str], parts: Parts, read_by: Mapping[str, list[str]], variable: str, result: str
) -> list[list[str]]:
    if part == "output":
        return _one_each(_numbered(place, result, read_by), each)
    condition = read_by[place][:1] if part == "switch_pred" else _names(parts, place, "switch_pred")
    return [condition for _ in each]


def _of_loop(
    place: str, part: str, each: list[str], parts: Parts, read_by: Mapping[str, list[str]], variable: str, result: str
) -> list[list[str]]:
    variables = _numbered(place, variable, read_by)
    if part == "enter":
        return _one_each([one[:1] for one in variables], each)
    if part == "next_iteration":
        return _one_each([one[1:] for one in variables], each)
    if part == "LoopCond":
        return [read_by.get(f"{place}{result}cond", []) for _ in each]
    for made, of in (("merge", "enter"), ("exit", "merge")):
        before = _names(parts, place, of)
        if part == made and len(before) == len(each):
            return [[one] for one in before]
    return [_names(parts, place, "LoopCond") if part not in ("merge", "exit") else [] for _ in each]


def _numbered(place: str, kind: str, read_by: Mapping[str, list[str]]) -> list[list[str]]:
    numbered: list[list[str]] = []
    while (reads := read_by.get(f"{place}{kind}{len(numbered)}")) is not None:
        numbered.append(reads)
    return numbered


def _one_each(reads: list[list[str]], each: list[str]) -> list[list[str]]:
    return reads if len(reads) == len(each) else [[] for _ in each]


def _names(parts: Parts, place: str, part: str) -> list[str]:
    return [f"{name}:0" for _, name in sorted(parts.get((place, part), []))]
