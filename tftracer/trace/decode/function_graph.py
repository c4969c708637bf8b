"""Builds the graph of a compiled step as one GraphDef: a function's definition, with every function that it calls inlined.

TensorFlow does the same before it runs a step. It names a node of a called function ``call/node``, and a node of a branch or of
a loop's body ``while/body/_7/node``. Only TensorFlow knows these numbers, so nodes and executions are matched by names without
them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.executed_graph import Expansion, executed_inputs
from tftracer.trace.decode.lowered_control_flow import lowered

#: No model nests its functions deeper than this; recursion in a library ends here, too.
MAX_DEPTH = 16
#: Maximum number of calls through which a result or an argument is followed.
_MAX_CHAIN = 4 * MAX_DEPTH
#: Attribute that holds a branch or body -> the name under which its nodes run.
_BRANCHES = {"then_branch": "then", "else_branch": "else", "body": "body", "cond": "cond"}
_SLOT = re.compile(r"[0-9]{1,9}")
_NUMBERED = re.compile(r"/(then|else|body|cond)/_\d+(?=/)")


#: Placeholders for a loop's variable and a branch's result. TensorFlow has no such nodes; readers skip them.
_VARIABLE, _RESULT = "/ variable/", "/ result/"
#: TensorFlow's graph optimizer names an op after the one that it replaces.
_OPTIMIZED = re.compile(
    r"(?P<scope>(?:.*/)?)(?:ArithmeticOptimizer/)+(?:AddOpsRewrite_(?P<leaf>Leaf_\d+_)?|ReorderCastLikeAndValuePreserving_\w+?_(?=[A-Z]))"
    r"(?P<name>[^/]+)"
)
_BRANCH = re.compile(r"/(?:then|else)/")
_COMPOSED = "/unary_ops_composition"


class _Function:
    """A function's definition, and the size of one inlined call (executed_graph.Expansion)."""

    def __init__(self, definition: Any) -> None:
        self.definition = definition  # FunctionDef
        self.arguments = [argument.name for argument in definition.signature.input_arg]
        self.outputs = [output.name for output in definition.signature.output_arg]
        self.characters = definition.ByteSize()

    @cached_property
    def nodes(self) -> dict[str, Any]:
        return {node.name: node for node in self.definition.node_def}

    @cached_property
    def items(self) -> int:
        return 1 + len(self.arguments) + len(self.outputs) + sum(1 + len(node.input) for node in self.definition.node_def)

    @cached_property
    def called(self) -> dict[str, list[tuple[str, str]]]:
        """node -> (attribute, function's name) of each function that it runs."""
        return {name: functions for name, node in self.nodes.items() if (functions := _called(node))}

    def returned(self, index: int) -> str:
        """Return the function's output ``index`` as ``node:output:slot``, or the argument that it passes on."""
        return str(self.definition.ret[self.outputs[index]])


@dataclass
class _Call:
    """A call, with the function that is inlined for it."""

    function: _Function
    prefix: str
    arguments: dict[str, str]  # argument -> the caller's input
    caller: _Call | None = None
    depth: int = 0
    calls: dict[str, list[_Call]] = field(default_factory=dict)  # node -> the calls that it makes

    @property
    def nodes(self) -> dict[str, Any]:
        return self.function.nodes


@dataclass
class _Graph:
    """The inputs and the op of every node, by ``without_numbers(name)``."""

    inputs: dict[str, list[str]] = field(default_factory=dict)
    ops: dict[str, str] = field(default_factory=dict)


def without_numbers(name: str) -> str:
    """Turn ``while/body/_7/MatMul`` into ``while/body/MatMul``."""
    return _NUMBERED.sub(r"/\1", name)


def inlined(library: Any, root: str, executed: dict[str, tuple[str, str]], expansion: Expansion) -> Any:
    """Build the GraphDef of function ``root`` of a FunctionDefLibrary.

    executed: ``without_numbers(name)`` -> (name, device) of the nodes that ran in the trace; the graph's nodes take these names
    and devices. Nodes that did not run (TensorFlow fuses some ops and drops others) are left out: their consumers read their
    inputs instead. Ops that the graph optimizer added take the place of the ops that they replaced. A call that ``expansion``
    does not admit stays a node.
    """
    functions = {definition.signature.name: _Function(definition) for definition in library.function}
    result = message_class("GraphDef")()
    if root not in functions or not expansion.admits(functions[root].items + len(executed), functions[root].characters):
        return result
    graph = _graph(_Call(functions[root], "", dict.fromkeys(functions[root].arguments, "")), functions, expansion)
    ran = _with_replacements(graph, executed, expansion)
    _drop_branches_not_taken(graph, ran)
    for key, op in graph.ops.items():
        if key in ran:
            name, device = ran[key]
            reads = executed_inputs(key, graph.inputs, ran, without_numbers, expansion)
            result.node.add(name=name, op=op, device=device, input=reads)
    return result


def _with_replacements(graph: _Graph, executed: dict[str, tuple[str, str]], expansion: Expansion) -> dict[str, tuple[str, str]]:
    """Return ``executed`` plus the ops that the graph optimizer replaced. If it split an op, add a node for each part."""
    ran = dict(executed)
    missing = [key for key in executed if key not in graph.inputs]
    for key, (op, reads) in lowered(missing, graph.ops, graph.inputs, _VARIABLE, _RESULT).items():
        graph.ops[key], graph.inputs[key] = op, reads
    for key, ran_as in executed.items():
        if key in graph.inputs:
            continue
        replaced, is_part = _replaced(key)
        if replaced in graph.inputs and replaced not in executed:
            if is_part and expansion.admits(len(graph.inputs[replaced])):
                graph.inputs[key], graph.ops[key] = list(graph.inputs[replaced]), graph.ops[replaced]
                graph.inputs[replaced].append(key)
            elif not is_part:
                ran[replaced] = ran_as
    return ran


def _drop_branches_not_taken(graph: _Graph, ran: dict[str, tuple[str, str]]) -> None:
    """Keep only the results of branches that ran; where no branch ran, keep all."""
    taken = {key[: match.end()] for key in ran for match in itertools.islice(_BRANCH.finditer(key), MAX_DEPTH)}
    for key, returned in graph.inputs.items():
        if _RESULT in key:
            from_taken = [text for text in returned if _lies_in(text, key.partition(_RESULT)[0], taken)]
            graph.inputs[key] = from_taken or returned


def _lies_in(text: str, if_name: str, taken: set[str]) -> bool:
    """Return whether a node is in a branch of the If ``if_name`` that ran."""
    name = without_numbers(text)
    return any(name.startswith(branch) for branch in (f"{if_name}/then/", f"{if_name}/else/") if branch in taken)


def _replaced(name: str) -> tuple[str, bool]:
    """Return (name of the op that an op of the graph optimizer replaces, whether it replaces only a part of that op).

    For other ops, return (the op's own name, False).
    """
    optimized = _OPTIMIZED.fullmatch(name)
    if optimized:
        return optimized["scope"] + optimized["name"], bool(optimized["leaf"])
    return name.removesuffix(_COMPOSED), False


def _graph(root: _Call, functions: dict[str, _Function], expansion: Expansion) -> _Graph:
    graph, calls = _Graph(), _expanded(root, functions, expansion)
    for argument in root.arguments:
        graph.inputs[argument], graph.ops[argument] = [], "_Arg"
    for index, output in enumerate(root.function.outputs):
        returned = _resolved(root.function.returned(index), root)
        for name in (f"{output}_RetVal", f"{output}_retval_RetVal"):  # the name depends on the version of TensorFlow
            graph.inputs[name], graph.ops[name] = [returned] if returned else [], "_Retval"
    for call in calls:
        for node in call.nodes.values():
            key = without_numbers(call.prefix + node.name)
            if node.name in call.calls:
                _add_results(graph, call, node, expansion)
            if node.name not in call.calls or not node.op.endswith("PartitionedCall"):
                graph.inputs[key] = _admitted((_resolved(name, call) for name in node.input), expansion)
                graph.ops[key] = node.op
    return graph


def _expanded(root: _Call, functions: dict[str, _Function], expansion: Expansion) -> list[_Call]:
    """Return all calls. They are collected first, so that each node's calls are known before any inputs are resolved."""
    calls = [root]
    for call in calls:  # the list grows in this loop
        if call.depth == MAX_DEPTH:
            break  # no later call is less deep
        for name, attributes in call.function.called.items():
            node = call.nodes[name]
            called = [(attribute, functions[function]) for attribute, function in attributes if function in functions]
            if called and all(_fits(function, node, call, expansion) for _, function in called):
                call.calls[name] = [_call_of(node, attribute, function, call) for attribute, function in called]
                calls += call.calls[name]
            if not expansion.left:
                return calls
    return calls


def _called(node: Any) -> list[tuple[str, str]]:
    """Return (attribute, function's name) of each function that a node runs."""
    is_call = node.op.endswith("PartitionedCall")
    functions = ((attribute, value.func.name) for attribute, value in sorted(node.attr.items()) if value.HasField("func"))
    return [(attribute, function) for attribute, function in functions if is_call or attribute in _BRANCHES]


def _fits(function: _Function, node: Any, call: _Call, expansion: Expansion) -> bool:
    """Return whether there is room for the function: the names of the surrounding calls are prepended to each node and input."""
    items = function.items + len(node.input)
    return expansion.admits(items, function.characters + items * (len(call.prefix) + len(node.name)))


def _admitted(texts: Iterable[str], expansion: Expansion) -> list[str]:
    """Return the names that are not empty, while there is room: a few bytes of a file may expand to a long name."""
    return [text for text in itertools.takewhile(lambda text: expansion.admits(0, len(text)), texts) if text]


def _call_of(node: Any, attribute: str, function: _Function, call: _Call) -> _Call:
    """Make the call of a node. Its arguments are stored as names, and resolved when they are read."""
    inputs = [text for text in node.input if not text.startswith("^")]
    caller_name = f"{call.prefix}{node.name}"
    if node.op.endswith("PartitionedCall"):
        return _Call(function, f"{caller_name}/", dict(zip(function.arguments, inputs)), call, call.depth + 1)
    given = inputs[1:] if node.op.endswith("If") else [f"{caller_name}{_VARIABLE}{k}" for k in range(len(inputs))]
    return _Call(function, f"{caller_name}/{_BRANCHES[attribute]}/", dict(zip(function.arguments, given)), call, call.depth + 1)


def _add_results(graph: _Graph, call: _Call, node: Any, expansion: Expansion) -> None:
    """Add an If's results, or a loop's variables, to the graph. A variable reads its initial value and the body's result."""
    name, children = f"{call.prefix}{node.name}", call.calls[node.name]
    if node.op.endswith("If"):
        for k in range(max(len(child.function.outputs) for child in children)):
            returned = (_result(child, k) for child in children)
            graph.inputs[without_numbers(f"{name}{_RESULT}{k}")] = _admitted(returned, expansion)
    elif node.op.endswith("While"):
        condition = (_result(child, 0) for child in children if child.prefix.endswith("/cond/"))
        graph.inputs[without_numbers(f"{name}{_RESULT}cond")] = _admitted(condition, expansion)
        body = next((child for child in children if child.prefix.endswith("/body/")), None)
        for k, text in enumerate(text for text in node.input if not text.startswith("^")):
            given_and_returned = (_resolved(text, call), _result(body, k) if body is not None else "")
            graph.inputs[without_numbers(f"{name}{_VARIABLE}{k}")] = _admitted(given_and_returned, expansion)


def _resolved(text: str, call: _Call, depth: int = 0) -> str:
    """Return ``node``, ``node:slot`` or ``^node`` with its full name; "" if it comes from outside the step."""
    control = text.startswith("^")
    name, _, output = text.lstrip("^").partition(":")
    if name in call.arguments and name not in call.nodes:
        return _argument(call, name, depth)
    slot = _slot(output)
    children = call.calls.get(name, [])
    if children and not control:
        if call.nodes[name].op.endswith("If"):
            return f"{call.prefix}{name}{_RESULT}{slot}:0"
        if call.nodes[name].op.endswith("While"):
            return f"{call.prefix}{name}{_VARIABLE}{slot}:0"
        return _result(children[0], slot, depth)
    return f"^{call.prefix}{name}" if control else f"{call.prefix}{name}:{slot}"


def _slot(output: str) -> int:
    """Return the number in ``value:2``; 0 if there is none."""
    digits = output.rpartition(":")[2]
    return int(digits) if _SLOT.fullmatch(digits) else 0


def _argument(call: _Call, name: str, depth: int) -> str:
    """Resolve an argument to the caller's input."""
    given = call.arguments[name]
    if call.caller is None or depth >= _MAX_CHAIN:
        return given if call.caller is None else ""
    return f"{given}:0" if _VARIABLE in given else _resolved(given, call.caller, depth + 1)


def _result(call: _Call, index: int, depth: int = 0) -> str:
    """Resolve a result of a call; "" if there is none, or if the chain of calls is too long."""
    if index >= len(call.function.outputs) or depth >= _MAX_CHAIN:
        return ""
    return _resolved(call.function.returned(index), call, depth + 1)
