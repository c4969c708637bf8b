"""Libraries of functions by hand, as a graph's definition has them, and the edges of what ran of them."""

from __future__ import annotations

from typing import Any

from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.executed_graph import Expansion
from tftracer.trace.decode.function_graph import inlined, without_numbers


def library(**functions: dict[str, Any]) -> Any:
    """name -> {"args": [...], "nodes": [(name, op, inputs, {attribute: function})], "ret": {output: source}}."""
    made = message_class("FunctionDefLibrary")()
    for name, parts in functions.items():
        function = made.function.add()
        function.signature.name = name
        for argument in parts.get("args", []):
            function.signature.input_arg.add(name=argument)
        for node_name, op, inputs, attributes in parts["nodes"]:
            node = function.node_def.add(name=node_name, op=op, input=inputs)
            for attribute, called in attributes.items():
                node.attr[attribute].func.name = called
        for output, source in parts.get("ret", {}).items():
            function.signature.output_arg.add(name=output)
            function.ret[output] = source
    return made


def edges(lib: Any, *executed: str) -> dict[str, list[str]]:
    names = {without_numbers(name): (name, "/host:CPU") for name in executed}
    return {node.name: list(node.input) for node in inlined(lib, "root", names, Expansion(lib.ByteSize())).node}
