"""A tree of layers as it grows, and the rows of an answer that it makes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tftracer.contract.layers import Layer
from tftracer.trace.arrays.types import Float64, Int64

#: The most scopes in a tree; what lies in further ones counts for the scope around them.
MAX_SCOPES = 1 << 17
#: The name of the row of scopes that were folded together.
OTHERS = "(others)"
_MOST_UNDERSCORED = 16  # levels


class LayerTree:
    """Layers have numbers. 0 stands for what is in no layer; a child layer has a higher number than its parent."""

    def __init__(self) -> None:
        self.parent = [0]
        self.names = [""]
        self.depth = [0]
        self._within: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        return len(self.parent)

    def add(self, path: Iterable[str]) -> int:
        """The number of the layer at a path, which is there from now on."""
        at = 0
        for name in path:
            inner = self._within.get((at, name))
            if inner is None:
                if len(self) >= MAX_SCOPES:
                    return at
                inner = self._within[at, name] = len(self)
                self.parent.append(at)
                self.names.append(name)
                self.depth.append(self.depth[at] + 1)
            at = inner
        return at

    def find(self, path: tuple[str, ...]) -> int:
        """The deepest layer at the beginning of a path, or at that of its end: names may have a scope before the layer's."""
        best = 0
        for first in range(len(path)):
            if len(path) - first <= self.depth[best]:
                break
            deepest = self._deepest(path, first)
            if self.depth[deepest] > self.depth[best]:
                best = deepest
        return best

    def _deepest(self, path: tuple[str, ...], first: int) -> int:
        at = 0
        for place in range(first, len(path)):
            inner = self._within.get((at, path[place]))
            if inner is None:
                break
            at = inner
        return at

    def outermost(self) -> dict[str, int]:
        """The layers that lie in no other."""
        return {name: number for (parent, name), number in self._within.items() if parent == 0}

    def by_underscored_path(self) -> dict[str, int]:
        """``a_b`` -> the layer ``a/b``."""
        paths = {0: ""}
        for number in range(1, len(self)):
            if self.depth[number] <= _MOST_UNDERSCORED:
                paths[number] = "_".join(filter(None, (paths[self.parent[number]], self.names[number])))
        return {path: number for number, path in paths.items() if number}


def layer_rows(tree: LayerTree, own: Float64, node: Int64, most: int) -> tuple[list[Layer], int]:
    """(rows of at most the ``most`` largest layers, how many others there are); those are folded within what they lie in.

    own: [layers, phases]. node: [layers]. What is in no layer has no row here.
    """
    total = inclusive(tree, own.sum(axis=1))
    depth = np.array(tree.depth)
    some = np.flatnonzero((total > 0) & (depth > 0))
    order = some[np.lexsort((some, depth[some], -total[some]))]  # a layer before those in it, which have no more than it has
    place = {0: -1}
    rows: list[Layer] = []
    for number in order[:most].tolist():
        place[number] = len(rows)
        rows.append(_row(place[tree.parent[number]], tree.names[number], own[number], int(node[number])))
    folded = order[most:].tolist()
    return rows + _folded(tree, own, folded, place), len(folded)


def _folded(tree: LayerTree, own: Float64, folded: list[int], place: dict[int, int]) -> list[Layer]:
    """One row for all that was folded within a layer that has one."""
    sums: dict[int, Float64] = {}
    count: dict[int, int] = {}
    within: dict[int, int] = {}
    for number in sorted(folded):
        parent = tree.parent[number]
        at = within[number] = within.get(parent, parent)
        sums[at] = sums.get(at, 0.0) + own[number]
        count[at] = count.get(at, 0) + 1
    return [_row(place[at], OTHERS, added, -1, count[at]) for at, added in sums.items()]


def _row(parent: int, name: str, own: Float64, node: int, folded: int = 0) -> Layer:
    kind = "others" if folded else "layer"
    return {"parent": parent, "name": name, "kind": kind, "folded": folded, "own": own.tolist(), "node": node}  # type: ignore[typeddict-item]


def inclusive(tree: LayerTree, own: Float64) -> Float64:
    """[layers] with all that lies in them."""
    total, parent, depth = own.copy(), np.array(tree.parent), np.array(tree.depth)
    for level in range(int(depth.max()), 1, -1):
        at = np.flatnonzero(depth == level)
        np.add.at(total, parent[at], total[at])
    return total
