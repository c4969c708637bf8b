"""Called functions, branches and loops in the places of their calls."""

from __future__ import annotations

from function_library import edges, library

from tftracer.trace.decode.executed_graph import Expansion
from tftracer.trace.decode.function_graph import inlined


def test_a_called_function_stands_in_the_place_of_its_call() -> None:
    lib = library(
        root={
            "args": ["x"],
            "nodes": [
                ("read", "ReadVariableOp", ["x"], {}),
                ("call", "StatefulPartitionedCall", ["read:value:0"], {"f": "inner"}),
                ("use", "Identity", ["call:output:1", "^call"], {}),
            ],
        },
        inner={
            "args": ["a"],
            "nodes": [("mul", "Mul", ["a", "a"], {}), ("split", "Split", ["mul:z:0"], {})],
            "ret": {"first": "split:output:0", "second": "split:output:2"},
        },
    )
    assert edges(lib, "read", "call/mul", "call/split", "use") == {
        "read": [],
        "use": ["call/split:2"],
        "call/mul": ["read", "read"],
        "call/split": ["call/mul"],
    }


def test_branches_and_bodies_find_their_executions_whatever_their_numbers() -> None:
    lib = library(
        root={
            "nodes": [
                ("start", "Const", [], {}),
                ("if", "StatelessIf", ["start:output:0", "start:output:0"], {"then_branch": "yes", "else_branch": "no"}),
                ("loop", "While", ["start:output:0"], {"body": "body", "cond": "cond"}),
            ]
        },
        yes={"args": ["v"], "nodes": [("if/Mul", "Mul", ["v"], {})], "ret": {"o": "if/Mul:z:0"}},
        no={"args": ["v"], "nodes": [("if/Sub", "Sub", ["v"], {})], "ret": {"o": "if/Sub:z:0"}},
        body={"args": ["i"], "nodes": [("add", "Add", ["i"], {}), ("neg", "Neg", ["add:z:0"], {})], "ret": {"o": "neg:y:0"}},
        cond={"args": ["i"], "nodes": [("less", "Less", ["i"], {})], "ret": {"o": "less:z:0"}},
    )
    graph_edges = edges(lib, "start", "if/then/_3/if/Mul", "loop/body/_17/add", "loop/body/_17/neg", "loop/cond/_16/less")
    assert graph_edges["if/then/_3/if/Mul"] == ["start"]
    assert graph_edges["loop/body/_17/neg"] == ["loop/body/_17/add"]
    # a loop's variable is what the loop was given, or what its body returned in the turn before
    assert graph_edges["loop/cond/_16/less"] == ["start", "loop/body/_17/neg"]
    assert graph_edges["loop/body/_17/add"] == ["start", "loop/body/_17/neg"]
    assert "if/else/_4/if/Sub" not in graph_edges


def test_what_reads_a_branch_or_a_loop_reads_what_it_returned() -> None:
    lib = library(
        root={
            "nodes": [
                ("start", "Const", [], {}),
                ("if", "If", ["start:output:0", "start:output:0"], {"then_branch": "yes", "else_branch": "no"}),
                ("loop", "While", ["if:output:0"], {"body": "no", "cond": "yes"}),
                ("use", "Exp", ["loop:output:0"], {}),
            ]
        },
        yes={"args": ["v"], "nodes": [("mul", "Mul", ["v"], {})], "ret": {"o": "mul:z:0"}},
        no={"args": ["v"], "nodes": [("sub", "Sub", ["v"], {})], "ret": {"o": "sub:z:0"}},
    )
    assert edges(lib, "start", "if/then/_3/mul", "loop/body/_9/sub", "use") == {
        "start": [],
        "if/then/_3/mul": ["start"],
        "loop/body/_9/sub": ["if/then/_3/mul", "loop/body/_9/sub"],
        "use": ["if/then/_3/mul", "loop/body/_9/sub"],
    }


def test_results_of_calls_within_calls() -> None:
    call = {"f": "outer"}
    lib = library(
        root={"nodes": [("call", "PartitionedCall", [], call), ("use", "Exp", ["call:output:0"], {})]},
        outer={"nodes": [("deep", "PartitionedCall", [], {"f": "inner"})], "ret": {"o": "deep:output:0"}},
        inner={"nodes": [("made", "Const", [], {})], "ret": {"o": "made:output:0"}},
    )
    assert edges(lib, "call/deep/made", "use") == {"use": ["call/deep/made"], "call/deep/made": []}


def test_ops_of_the_optimizer_stand_for_those_that_they_replaced() -> None:
    lib = library(
        root={
            "nodes": [
                ("a", "Const", [], {}),
                ("scope/add_1", "AddV2", ["a:output:0"], {}),
                ("exp", "Exp", ["scope/add_1:z:0"], {}),
                ("tanh", "Tanh", ["exp:y:0"], {}),
            ]
        }
    )
    rewritten, leaf = "scope/ArithmeticOptimizer/AddOpsRewrite_add_1", "scope/ArithmeticOptimizer/AddOpsRewrite_Leaf_0_add_1"
    assert edges(lib, "a", rewritten, leaf, "tanh/unary_ops_composition") == {
        "a": [],
        leaf: ["a"],
        rewritten: ["a", leaf],
        "tanh/unary_ops_composition": [rewritten],
    }


def test_what_was_fused_away_is_passed_on_the_way_to_what_ran() -> None:
    lib = library(
        root={
            "nodes": [
                ("a", "Const", [], {}),
                ("conv", "Conv2D", ["a:output:0"], {}),
                ("bias", "BiasAdd", ["conv:output:0", "^gone"], {}),
                ("gone", "NoOp", ["^a"], {}),
            ]
        }
    )
    assert edges(lib, "a", "bias") == {"a": [], "bias": ["a", "^a"]}


def test_a_library_that_calls_itself_ends() -> None:
    node = ("again", "PartitionedCall", ["x"], {"f": "root"})
    lib = library(root={"args": ["x"], "nodes": [node], "ret": {"o": "again:output:0"}})
    assert edges(lib, "again/again") == {}


def test_an_unknown_root_has_no_graph() -> None:
    assert not inlined(library(root={"nodes": []}), "another", {}, Expansion(0)).node
