"""Finds TensorFlow's modules for compiled functions; their names differ between versions. Reads the definition of a function, as
TensorFlow executes it, and the definitions of all functions that it calls.
"""

from __future__ import annotations

import importlib
from typing import Any

from tftracer.trace.decode.descriptors import message_class

MAX_FUNCTIONS = 1000  # maximum number of function definitions in a trace
#: Op types that TensorFlow marks as stateful and that have no resource input, but whose kernels keep no state between steps.
_OPS_WITHOUT_STATE = {"Assert", "Case", "EagerPyFunc", "If", "Placeholder", "Print", "PrintV2", "PyFunc", "Timestamp"}
_OPS_WITHOUT_STATE |= {"StatefulPartitionedCall", "VarHandleOp", "While"}


_PACKAGE = "tensorflow.python.eager.polymorphic_function"


def function_module() -> Any:
    """Return the module of ``Function``, the class of the objects that ``tf.function`` returns."""
    return importlib.import_module(f"{_PACKAGE}.polymorphic_function")


def concrete_function_module() -> Any:
    """Return the module of ``ConcreteFunction``. Raises ImportError if this TensorFlow has it in another place."""
    try:
        return importlib.import_module(f"{_PACKAGE}.concrete_function")
    except ImportError:
        return importlib.import_module(f"{_PACKAGE}.monomorphic_function")  # TensorFlow 2.12


def is_concrete(value: Any) -> bool:
    """Return whether this is a ``ConcreteFunction``. Does not import TensorFlow."""
    return type(value).__module__.startswith("tensorflow.") and isinstance(value, concrete_function_module().ConcreteFunction)


def name_of(concrete: Any) -> str:
    name = concrete.name
    return name.decode() if isinstance(name, bytes) else str(name)


def function_library(concrete: Any) -> Any:
    """Return a FunctionDefLibrary with a ConcreteFunction's definition first, then those of the functions that it calls."""
    context = importlib.import_module("tensorflow.python.eager.context").context()
    root = name_of(concrete)
    library, remaining, seen = message_class("FunctionDefLibrary")(), [root], {root}
    while remaining and len(seen) < MAX_FUNCTIONS:
        definition = library.function.add()
        definition.ParseFromString(context.get_function_def(remaining.pop()).SerializeToString())
        for node in definition.node_def:
            for value in node.attr.values():
                called = value.func.name if value.HasField("func") else ""
                if called and called not in seen and context.has_function(called):
                    seen.add(called)
                    remaining.append(called)
    return library


def constant_bytes(graph: Any) -> int:
    """Return the size in bytes of the constants in a function's graph and in the graphs of the functions that it calls."""
    functions = getattr(graph, "_functions", {}).values()
    graphs = [graph, *(inner for function in functions if (inner := getattr(function, "graph", None)) is not None)]
    tensors = [op.outputs[0] for each in graphs for op in each.get_operations() if op.type == "Const"]
    return sum((tensor.shape.num_elements() or 0) * tensor.dtype.size for tensor in tensors)


def first_stateful_op(library: Any) -> str:
    """Return the first op whose kernel may keep state between steps, as "name (Type)"; "" if there is none.

    If the graph is built again, the new kernels lose that state. Ops with a resource input keep their state in the resource, so
    they do not count.
    """
    registry: Any = importlib.import_module("tensorflow.python.framework.op_def_registry")
    resource = importlib.import_module("tensorflow").resource.as_datatype_enum
    for function in library.function:
        for node in function.node_def:
            definition = registry.get(node.op)
            if node.op in _OPS_WITHOUT_STATE or (definition is not None and not definition.is_stateful):
                continue
            if definition is None or all(argument.type != resource for argument in definition.input_arg):
                return f"{node.name} ({node.op})"
    return ""
