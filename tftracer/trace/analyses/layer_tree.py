"""A growing tree of layers, and its rows in an answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from tftracer.contract.layers import Layer
from tftracer.trace.arrays.types import Float64, Int64

#: Maximum number of layers in a tree; ops in further layers count for the enclosing layer.
MAX_TREE_LAYERS = 1 << 17
#: The name of the row of layers that were folded together.
OTHERS = "(others)"
_Kind = Literal["layer", "input", "none", "others"]
_MAX_UNDERSCORED_DEPTH = 16


class LayerTree:
    """A tree of numbered layers. 0 means "in no layer"; a child layer has a higher number than its parent."""

    def __init__(self) -> None:
        self.parent = [0]
        self.names = [""]
        self.depth = [0]
        self._child: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        return len(self.parent)

    def add(self, path: Iterable[str]) -> int:
        """Return the number of the layer at a path, and create it if necessary."""
        at = 0
        for name in path:
            inner = self._child.get((at, name))
            if inner is None:
                if len(self) >= MAX_TREE_LAYERS:
                    return at
                inner = self._child[at, name] = len(self)
                self.parent.append(at)
                self.names.append(name)
                self.depth.append(self.depth[at] + 1)
            at = inner
        return at

    def find(self, path: tuple[str, ...]) -> int:
        """Return the deepest layer whose whole path occurs somewhere in ``path``; 0 if there is none.

        ``path``: the name scopes of an op, which may have further scopes before the layer's path.
        """
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
        for position in range(first, len(path)):
            inner = self._child.get((at, path[position]))
            if inner is None:
                break
            at = inner
        return at

    def outermost(self) -> dict[str, int]:
        """Return name -> number of the layers at the top level."""
        return {name: number for (parent, name), number in self._child.items() if parent == 0}

    def by_underscored_path(self) -> dict[str, int]:
        """Return ``a_b`` -> number of the layer ``a/b``."""
        paths = {0: ""}
        for number in range(1, len(self)):
            if self.depth[number] <= _MAX_UNDERSCORED_DEPTH:
                paths[number] = "_".join(filter(None, (paths[self.parent[number]], self.names[number])))
        return {path: number for number, path in paths.items() if number}


def layer_rows(tree: LayerTree, own: Float64, node: Int64, limit: int) -> tuple[list[Layer], int]:
    """Return (rows of the ``limit`` largest layers, number of other layers). Others are folded into one row
    for each shown layer that encloses some of them.

    ``own``: [layers, phases] amounts without those of child layers. ``node``: [layers] the node with the largest amount, or -1.
    There is no row for ops in no layer.
    """
    total = inclusive(tree, own.sum(axis=1))
    depth = np.array(tree.depth)
    used = np.flatnonzero((total > 0) & (depth > 0))
    order = used[np.lexsort((used, depth[used], -total[used]))]  # a layer comes before its children, which are not larger
    row_of = {0: -1}
    rows: list[Layer] = []
    for number in order[:limit].tolist():
        row_of[number] = len(rows)
        rows.append(row(row_of[tree.parent[number]], tree.names[number], own[number], int(node[number])))
    folded = order[limit:].tolist()
    return rows + _folded(tree, own, folded, row_of), len(folded)


def _folded(tree: LayerTree, own: Float64, folded: list[int], row_of: dict[int, int]) -> list[Layer]:
    """Return, for each shown layer, one row that sums up the layers folded within it. The top level gets such a row, too.

    Shown layers without folded layers get none.
    """
    sums: dict[int, Float64] = {}
    count: dict[int, int] = {}
    within: dict[int, int] = {}
    for number in sorted(folded):
        parent = tree.parent[number]
        at = within[number] = within.get(parent, parent)
        sums[at] = sums.get(at, 0.0) + own[number]
        count[at] = count.get(at, 0) + 1
    return [row(row_of[at], OTHERS, added, -1, "others", count[at]) for at, added in sums.items()]


def row(parent: int, name: str, own: Float64, node: int = -1, kind: _Kind = "layer", folded: int = 0) -> Layer:
    """Return a layer's row. ``own``: [phases] its amounts without child layers."""
    return {"parent": parent, "name": name, "kind": kind, "folded": folded, "own": own.tolist(), "node": node}


def inclusive(tree: LayerTree, own: Float64) -> Float64:
    """Return [layers] the sum of each layer's own amount and those of all layers within it."""
    total, parent, depth = own.copy(), np.array(tree.parent), np.array(tree.depth)
    for level in range(int(depth.max()), 1, -1):
        at = np.flatnonzero(depth == level)
        np.add.at(total, parent[at], total[at])
    return total
