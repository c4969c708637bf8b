"""Writes the page's types: ``python -m tftracer.contract.typescript > frontend/src/client/messages.ts``."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from importlib import import_module
from typing import Any, Literal, Union, get_args, get_origin

from tftracer.contract.analyses import ANALYSES

HEADER = """// Generated from tftracer/contract/ by `make frontend-types`. Do not edit.
"""
#: The contract's modules in the order of messages.ts. Modules that only have messages of analyses follow without an entry here.
MODULES = [
    "basics", "stalls", "machine", "session", "ledger", "input_pipelines", "memory_growth", "trace", "over_traces", "job", "live",
    "standalone",
]  # fmt: skip
PRIMITIVES: dict[Any, str] = {str: "string", int: "number", float: "number", bool: "boolean", bytes: "Uint8Array"}


def type_script(kind: Any) -> str:
    """Return the TypeScript form of a Python type. Raises TypeError for a type that JSON and msgpack do not have."""
    if kind in PRIMITIVES:
        return PRIMITIVES[kind]
    if kind is None or kind is type(None):
        return "null"
    if typing.is_typeddict(kind):
        return str(kind.__name__)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " | ".join("true" if a is True else f'"{a}"' for a in arguments)
    if origin in (Union, types.UnionType):
        return " | ".join(type_script(a) for a in arguments)
    if origin is list:
        inner = type_script(arguments[0])
        return f"({inner})[]" if "|" in inner else f"{inner}[]"
    if origin is dict:
        return f"Record<string, {type_script(arguments[1])}>"
    raise TypeError(f"the wire contract cannot carry {kind!r}")


def interface(name: str, kind: Any) -> str:
    """Return the TypeScript interface of a TypedDict."""
    lines = [f"export interface {name} {{"]
    for key, value in typing.get_type_hints(kind).items():
        mark = "" if key in kind.__required_keys__ else "?"
        lines.append(f"  {key}{mark}: {type_script(value)};")
    return "\n".join([*lines, "}"])


def generate() -> str:
    """Return the whole of messages.ts."""
    parts = [HEADER]
    analysis_modules = [analysis.message.__module__ for analysis in ANALYSES]
    modules = dict.fromkeys([*(f"tftracer.contract.{module}" for module in MODULES), *analysis_modules])
    contract = {name: value for module in modules for name, value in vars(import_module(module)).items()}
    for name, value in contract.items():
        if typing.is_typeddict(value):
            documentation = inspect.getdoc(value) if "__doc__" in vars(value) and value.__doc__ else None
            comment = f"/** {' '.join(documentation.split())} */\n" if documentation else ""
            parts.append(comment + interface(name, value) + "\n")
        elif get_origin(value) in (Literal, Union) and name[0].isupper():
            parts.append(f"export type {name} = {type_script(value)};\n")
    return "\n".join([*parts, analyses_interface()])


def analyses_interface() -> str:
    """Return a TypeScript interface that maps the path of each analysis to the type of its answer."""
    comment = "/** The analyses of a trace, by their paths under /api/traces/ID/. */"
    entries = [f'  "{analysis.path}": {analysis.message.__name__};' for analysis in ANALYSES]
    return "\n".join([comment, "export interface Analyses {", *entries, "}", ""])


if __name__ == "__main__":
    sys.stdout.write(generate())
