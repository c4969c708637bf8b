"""The graph of a compiled step: a function's definition with the functions that it calls put in their places, as one GraphDef.

TensorFlow does the same before it runs a step: a node of a called function is named ``call/node``, one of a branch or a
loop's body ``while/body/_7/node``. The numbers are TensorFlow's own, so such nodes find their executions by their names
without them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.executed_graph import read_by
from tftracer.trace.decode.lowered_control_flow import lowered

#: Deeper than this no model nests its functions; a library that calls itself ends here, too.
MAX_DEPTH = 16
MAX_NODES = 1 << 20
#: Results of calls of results of calls, and arguments of arguments, are followed so far.
_MAX_CHAIN = 4 * MAX_DEPTH
#: Attributes that hold a function whose nodes run under a name of their own, and that name.
_BRANCHES = {"then_branch": "then", "else_branch": "else", "body": "body", "cond": "cond"}
_NUMBERED = re.compile(r"/(then|else|body|cond)/_\d+(?=/)")


#: A loop's variable, and what a branch returns: no nodes of TensorFlow's, passed over on the way to what ran.
_VARIABLE, _RESULT = "/ variable/", "/ result/"
#: Ops that the optimizer put in the place of others are named after these.
_OPTIMIZED = re.compile(
    r"(?P<scope>(?:.*/)?)(?:ArithmeticOptimizer/)+(?:AddOpsRewrite_(?P<leaf>Leaf_\d+_)?|ReorderCastLikeAndValuePreserving_\w+?_(?=[A-Z]))"
    r"(?P<name>[^/]+)"
)
_BRANCH = re.compile(r"/(?:then|else)/")
_COMPOSED = "/unary_ops_composition"


@dataclass
class _Call:
    """A function in the place of one call."""

    definition: Any  # FunctionDef
    prefix: str
    arguments: dict[str, str]  # its arguments -> what the caller gives
    caller: _Call | None = None
    depth: int = 0
    calls: dict[str, list[_Call]] = field(default_factory=dict)  # node -> what it runs
    nodes: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Graph:
    """All nodes by ``without_numbers(name)``, with what they read."""

    inputs: dict[str, list[str]] = field(default_factory=dict)
    ops: dict[str, str] = field(default_factory=dict)


def without_numbers(name: str) -> str:
    """``while/body/_7/MatMul`` as ``while/body/MatMul``."""
    return _NUMBERED.sub(r"/\1", name)


def inlined(library: Any, root: str, executed: dict[str, tuple[str, str]]) -> Any:
    """The GraphDef of function ``root`` of a FunctionDefLibrary.

    executed: ``without_numbers(name)`` -> (name, device) of what ran in the trace: nodes take these, so that they are found. What
    did not run (TensorFlow fuses ops, and leaves some out) is left out here, too: its readers read what it read. What the
    optimizer added stands for the ops that it replaced.
    """
    functions = {one.signature.name: one for one in library.function}
    if root not in functions:
        return message_class("GraphDef")()
    graph = _graph(_Call(functions[root], "", {argument.name: "" for argument in functions[root].signature.input_arg}), functions)
    ran = _with_replacements(graph, executed)
    _drop_branches_not_taken(graph, ran)
    result = message_class("GraphDef")()
    for key, op in graph.ops.items():
        if key in ran:
            name, device = ran[key]
            result.node.add(name=name, op=op, device=device, input=read_by(key, graph.inputs, ran, without_numbers))
    return result


def _with_replacements(graph: _Graph, executed: dict[str, tuple[str, str]]) -> dict[str, tuple[str, str]]:
    """``executed``, with the ops that the optimizer's stand for; parts of one op that it split are nodes of the graph."""
    ran = dict(executed)
    missing = [key for key in executed if key not in graph.inputs]
    for key, (op, reads) in lowered(missing, graph.ops, graph.inputs, _VARIABLE, _RESULT).items():
        graph.ops[key], graph.inputs[key] = op, reads
    for key, ran_as in executed.items():
        if key in graph.inputs:
            continue
        replaced, is_part = _replaced(key)
        if replaced in graph.inputs and replaced not in executed:
            if is_part:
                graph.inputs[key], graph.ops[key] = list(graph.inputs[replaced]), graph.ops[replaced]
                graph.inputs[replaced].append(key)
            else:
                ran[replaced] = ran_as
    return ran


def _drop_branches_not_taken(graph: _Graph, ran: dict[str, tuple[str, str]]) -> None:
    """A result comes from the branches of which anything ran; from all, where nothing did."""
    taken = {key[: match.end()] for key in ran for match in _BRANCH.finditer(key)}
    for key, returned in graph.inputs.items():
        if _RESULT in key:
            of_taken = [text for text in returned if _lies_in(text, key.partition(_RESULT)[0], taken)]
            graph.inputs[key] = of_taken or returned


def _lies_in(text: str, place: str, taken: set[str]) -> bool:
    """Whether a node is in a branch of the If at ``place`` that ran."""
    name = without_numbers(text)
    return any(name.startswith(branch) for branch in (f"{place}/then/", f"{place}/else/") if branch in taken)


def _replaced(name: str) -> tuple[str, bool]:
    """(the op that an op of the optimizer's stands for, whether it is one of several)."""
    optimized = _OPTIMIZED.fullmatch(name)
    if optimized:
        return optimized["scope"] + optimized["name"], bool(optimized["leaf"])
    return name.removesuffix(_COMPOSED), False


# --------------------------------------------------------------------------------------------------------------- inlining


def _graph(root: _Call, functions: dict[str, Any]) -> _Graph:
    graph, calls = _Graph(), _expanded(root, functions)
    for argument in root.arguments:
        graph.inputs[argument], graph.ops[argument] = [], "_Arg"
    for output in root.definition.signature.output_arg:
        returned = _resolved(root.definition.ret[output.name], root)
        for name in (f"{output.name}_RetVal", f"{output.name}_retval_RetVal"):  # as versions name it
            graph.inputs[name], graph.ops[name] = [returned] if returned else [], "_Retval"
    for call in calls:
        for node in call.nodes.values():
            key = without_numbers(call.prefix + node.name)
            if node.name in call.calls:
                _add_results(graph, call, node)
            if node.name not in call.calls or not node.op.endswith("PartitionedCall"):
                graph.inputs[key] = [text for name in node.input if (text := _resolved(name, call))]
                graph.ops[key] = node.op
    return graph


def _expanded(root: _Call, functions: dict[str, Any]) -> list[_Call]:
    """All calls: what each runs is known before any of their nodes are read."""
    calls, nodes = [root], 0
    for call in calls:  # grows
        nodes += len(call.definition.node_def)
        if nodes > MAX_NODES:
            break
        call.nodes = {node.name: node for node in call.definition.node_def}
        if call.depth < MAX_DEPTH:
            for node in call.nodes.values():
                children = list(_called(node, call, functions))
                if children:
                    call.calls[node.name] = children
                    calls += children
    return calls


def _called(node: Any, call: _Call, functions: dict[str, Any]) -> Iterator[_Call]:
    """What a node runs. Its arguments are told by name, and resolved when they are read."""
    inputs = [text for text in node.input if not text.startswith("^")]
    for attribute, value in sorted(node.attr.items()):
        definition = functions.get(value.func.name) if value.HasField("func") else None
        if definition is None:
            continue
        names, place = [argument.name for argument in definition.signature.input_arg], f"{call.prefix}{node.name}"
        if node.op.endswith("PartitionedCall"):
            yield _Call(definition, f"{place}/", dict(zip(names, inputs)), call, call.depth + 1)
        elif attribute in _BRANCHES:
            given = inputs[1:] if node.op.endswith("If") else [f"{place}{_VARIABLE}{k}" for k in range(len(inputs))]
            yield _Call(definition, f"{place}/{_BRANCHES[attribute]}/", dict(zip(names, given)), call, call.depth + 1)


def _add_results(graph: _Graph, call: _Call, node: Any) -> None:
    """What a branch returns, and a loop's variables: first what the loop is given, then what its body returned."""
    place, children = f"{call.prefix}{node.name}", call.calls[node.name]
    inputs = [_resolved(text, call) for text in node.input if not text.startswith("^")]
    if node.op.endswith("If"):
        for k in range(max(len(child.definition.signature.output_arg) for child in children)):
            graph.inputs[without_numbers(f"{place}{_RESULT}{k}")] = [text for child in children if (text := _result(child, k))]
    elif node.op.endswith("While"):
        condition = [_result(child, 0) for child in children if child.prefix.endswith("/cond/")]
        graph.inputs[without_numbers(f"{place}{_RESULT}cond")] = [text for text in condition if text]
        body = next((child for child in children if child.prefix.endswith("/body/")), None)
        for k, given in enumerate(inputs):
            returned = _result(body, k) if body is not None else ""
            graph.inputs[without_numbers(f"{place}{_VARIABLE}{k}")] = [text for text in (given, returned) if text]


def _resolved(text: str, call: _Call, depth: int = 0) -> str:
    """``node``, ``node:slot`` or ``^node`` with full names; "" for what comes from outside the step."""
    control = text.startswith("^")
    name, _, output = text.lstrip("^").partition(":")
    if name in call.arguments and name not in call.nodes:
        return _argument(call, name, depth)
    slot = int(output.rpartition(":")[2] or 0)
    children = call.calls.get(name, [])
    if children and not control:
        if call.nodes[name].op.endswith("If"):
            return f"{call.prefix}{name}{_RESULT}{slot}:0"
        if call.nodes[name].op.endswith("While"):
            return f"{call.prefix}{name}{_VARIABLE}{slot}:0"
        return _result(children[0], slot, depth)
    return f"^{call.prefix}{name}" if control else f"{call.prefix}{name}:{slot}"


def _argument(call: _Call, name: str, depth: int) -> str:
    """Where the caller has it from."""
    given = call.arguments[name]
    if call.caller is None or depth >= _MAX_CHAIN:
        return given if call.caller is None else ""
    return f"{given}:0" if _VARIABLE in given else _resolved(given, call.caller, depth + 1)


def _result(call: _Call, index: int, depth: int = 0) -> str:
    outputs = call.definition.signature.output_arg
    if index >= len(outputs) or depth >= _MAX_CHAIN:
        return ""
    return _resolved(call.definition.ret[outputs[index].name], call, depth + 1)
