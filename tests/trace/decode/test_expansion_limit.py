"""Small graphs whose parts name each other: each is decoded by a process that may take LIMIT_MB."""

from __future__ import annotations

import lzma
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from function_library import library

from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.executed_graph import Expansion
from tftracer.trace.decode.function_graph import inlined, without_numbers

#: Each of the graphs took more before it was bounded.
LIMIT_MB = 400
CALL, DATA = "PartitionedCall", Path(__file__).parents[2] / "data" / "xspace"
Bomb = tuple[Any, list[str]]  # a library, and the names of what ran


def calls_of_calls() -> Bomb:
    functions: dict[str, Any] = {
        f"f{i}": {"nodes": [(f"n{k}", CALL, [], {"f": f"f{i + 1}"}) for k in range(20)], "ret": {"o": "n0:o:0"}}
        for i in range(15)
    }
    return library(root={"nodes": [("n", CALL, [], {"f": "f0"})]}, **functions, f15={"nodes": []}), ["n"]


def attributes_of_one_node() -> Bomb:
    return library(root={"nodes": [(f"n{k}", CALL, [], {f"a{i}": "root" for i in range(100)}) for k in range(50)]}), ["n"]


def readers_of_one_that_did_not_run() -> Bomb:
    readers = [f"r{i}" for i in range(3000)]
    nodes: list[Any] = [("x", "Exp", ["a"] * 50_000, {}), ("a", "Const", [], {}), *((name, "Exp", ["x"], {}) for name in readers)]
    return library(root={"nodes": nodes}), ["a", *readers]


def results_with_a_long_name() -> Bomb:
    long = "n" * 20_000
    root = {"nodes": [("c", CALL, [], {"f": "g"}), ("u", "Exp", ["c:o:0"] * 100_000, {})]}
    return library(root=root, g={"nodes": [(long, "Const", [], {})], "ret": {"o": f"{long}:o:0"}}), ["u", f"c/{long}"]


def variables_of_a_loop_with_a_long_name() -> Bomb:
    nodes = [("n" * 30_000, "While", ["a"] * 30_000, {"body": "g", "cond": "g"})]
    return library(root={"nodes": nodes}, g={"nodes": []}), ["n"]


def branches_within_a_name() -> Bomb:
    return library(root={"nodes": []}), ["a/then/" * 20_000]


def parts_of_one_op() -> Bomb:
    return library(root={"nodes": [("x", "Exp", [], {})]}), [
        f"ArithmeticOptimizer/AddOpsRewrite_Leaf_{i}_x" for i in range(20_000)
    ]


def parts_of_one_branch() -> Bomb:
    root = {"nodes": [("b", "If", ["x"], {"then_branch": "g"})]}
    return library(root=root, g={"nodes": []}), [name for i in range(5000) for name in (f"b/switch_pred/_{i}", f"b/p{i}/_1")]


BOMBS: list[Callable[[], Bomb]] = [
    calls_of_calls,
    attributes_of_one_node,
    readers_of_one_that_did_not_run,
    results_with_a_long_name,
    variables_of_a_loop_with_a_long_name,
    branches_within_a_name,
    parts_of_one_op,
    parts_of_one_branch,
]


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_a_small_graph_takes_a_bounded_part_of_memory(bomb: Callable[[], Bomb]) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, __file__, bomb.__name__]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("path", sorted(DATA.glob("function_library_*")), ids=lambda path: path.name)
def test_a_real_library_needs_a_quarter_of_what_it_may_take(path: Path) -> None:
    raw = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    definitions = message_class("FunctionDefLibrary").FromString(raw)
    for function in definitions.function:
        room = Expansion(len(raw))
        before = room.left
        ran = {node.name: (node.name, "/cpu") for node in function.node_def}
        assert inlined(definitions, function.signature.name, ran, room).node or not ran
        assert room.left > 0.75 * before


def main(name: str) -> None:
    graph, ran = next(bomb for bomb in BOMBS if bomb.__name__ == name)()
    mapped = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + (LIMIT_MB << 20),) * 2)
    inlined(graph, "root", {without_numbers(name): (name, "/cpu") for name in ran}, Expansion(graph.ByteSize()))


if __name__ == "__main__":
    main(sys.argv[1])
