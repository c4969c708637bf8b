"""Writes the page's types: ``python -m tftracer.contract.typescript > frontend/src/client/messages.ts``."""

from __future__ import annotations

import ast
import inspect
import re
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


def interface(name: str, kind: Any, comments: dict[str, str]) -> str:
    """Return the TypeScript interface of a TypedDict, with the comments of its fields."""
    lines = [f"export interface {name} {{"]
    for key, value in typing.get_type_hints(kind).items():
        mark = "" if key in kind.__required_keys__ else "?"
        lines += _documentation(comments.get(f"{name}.{key}"), "  ")
        lines.append(f"  {key}{mark}: {type_script(value)};")
    return "\n".join([*lines, "}"])


def comments_of(source: str) -> dict[str, str]:
    """Return "Class.field" (or the name of a type) -> its comment in a module: the lines above it, and the end of its line."""
    lines, comments = source.splitlines(), {}
    for node in ast.parse(source).body:
        prefix, fields = (f"{node.name}.", node.body) if isinstance(node, ast.ClassDef) else ("", [node])
        for field in fields:
            name = _name_of(field)
            above = field.lineno - 1
            while name and above and lines[above - 1].lstrip().startswith("#"):
                above -= 1
            texts = [line.lstrip("# :") for line in lines[above : field.lineno - 1]]
            texts += re.findall(r"  # (?!fmt:)(.*)", lines[(field.end_lineno or field.lineno) - 1])
            comments[prefix + name] = " ".join(texts)
    return comments


def _name_of(statement: ast.stmt) -> str:
    """Return the name that a statement defines; "" if it is no field, and no assignment to one name."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return targets[0].id if isinstance(targets[0], ast.Name) else ""


def _documentation(text: str | None, indent: str = "") -> list[str]:
    return [f"{indent}/** {text} */"] if text else []


def generate() -> str:
    """Return the whole of messages.ts."""
    parts = [HEADER]
    analysis_modules = [analysis.message.__module__ for analysis in ANALYSES]
    modules = dict.fromkeys([*(f"tftracer.contract.{module}" for module in MODULES), *analysis_modules])
    contract = {name: value for module in modules for name, value in vars(import_module(module)).items()}
    comments: dict[str, str] = {}
    for module in modules:
        comments |= comments_of(inspect.getsource(import_module(module)))
    for name, value in contract.items():
        if typing.is_typeddict(value):
            text = " ".join((vars(value).get("__doc__") or "").split())
            parts.append("\n".join([*_documentation(text), interface(name, value, comments), ""]))
        elif get_origin(value) in (Literal, Union) and name[0].isupper():
            parts.append("\n".join([*_documentation(comments.get(name)), f"export type {name} = {type_script(value)};", ""]))
    return "\n".join([*parts, analyses_interface()])


def analyses_interface() -> str:
    """Return a TypeScript interface that maps the path of each analysis to the type of its answer."""
    comment = "/** The analyses of a trace, by their paths under /api/traces/ID/. */"
    entries = [f'  "{analysis.path}": {analysis.message.__name__};' for analysis in ANALYSES]
    return "\n".join([comment, "export interface Analyses {", *entries, "}", ""])


if __name__ == "__main__":
    sys.stdout.write(generate())
