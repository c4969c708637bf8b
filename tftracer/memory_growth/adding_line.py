"""Finds in the user's source the line that adds to a list, dict, text or array of a known name. No side effects.

A line is returned only if it alone adds to that name, in a loop or in a separate function, and if nothing else may add to the
same object under another name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import NamedTuple, Optional

#: Methods that add, and methods that return entries.
ADDING = frozenset(["append", "appendleft", "extend", "extendleft", "add", "insert", "update", "setdefault"])
RETURNING_ENTRIES = frozenset(["setdefault", "get", "values", "items", "pop"])
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


class Name(NamedTuple):
    """A name of the user's source that leads to a growing object.

    ``line``: the first line of the function of which it is a local variable; 0: it is a global variable. ``is_attribute``: it is
    an attribute of any object of a user's class. ``is_within``: an entry of the named object grows, as in
    ``kept["loss"].append(1)``; ``key``: the ``repr`` of that entry's key.
    """

    file: str
    name: str
    line: int = 0
    is_attribute: bool = False
    is_within: bool = False
    key: str = ""


#: (file, line) of the lines that add; None: other lines may add, too.
_Lines = Optional[set[tuple[str, int]]]


def adding_line(name: Name, sources: Mapping[str, str]) -> str:
    """Return "train.py:12"; "" if no line, or more than one, is known to add. ``sources``: the user's files -> their texts."""
    files = sources if name.is_attribute else {name.file: sources.get(name.file, "")}
    try:
        trees = {file: _Tree(ast.parse(text)) for file, text in files.items()}
    except (SyntaxError, ValueError, RecursionError):
        return ""
    lines = _lines(name, trees, False, set())
    if lines is None or len(lines) != 1:
        return ""
    ((file, line),) = lines
    return f"{PurePath(file).name}:{line}"


def _lines(name: Name, trees: Mapping[str, _Tree], repeats: bool, seen: set[Name]) -> _Lines:
    """Return the lines that add. ``repeats``: whether the name is a parameter of a function that is called repeatedly.
    ``seen``: names that were followed already."""
    if name in seen:
        return set()
    seen.add(name)
    lines: set[tuple[str, int]] = set()
    defined = {name for tree in trees.values() for name in tree.defined}
    for file in trees if name.is_attribute else [name.file]:
        tree = trees[file]
        for node in tree.uses(name):
            inner = tree.inner(node)
            statement = tree.adding_within(node) if name.is_within and inner is node else tree.adding(inner)
            if statement is not None and tree.may_have_key(node, name.key):
                if repeats or tree.repeats(statement, name):
                    lines.add((file, statement.lineno))
                continue
            for each in [node, inner] if name.is_within and inner is not node else [node]:
                parameter = tree.parameter(each)
                if parameter is not None:
                    is_whole = name.is_within and each is node
                    passed_as = Name(file, parameter.name, parameter.line, False, is_whole, name.key if is_whole else "")
                    more = _lines(passed_as, trees, repeats or tree.repeats(parameter.call, name), seen)
                    if more is None:
                        return None
                    lines |= more
                elif tree.may_get_another_name(each, defined):
                    return None
    return lines


class _Parameter(NamedTuple):
    """A parameter of a function of the same file."""

    name: str
    line: int  # first line of the function
    call: ast.Call


class _Tree:
    def __init__(self, root: ast.Module) -> None:
        self._root = root
        self._parents = {child: node for node in ast.walk(root) for child in ast.iter_child_nodes(node)}
        self._functions = [node for node in ast.walk(root) if isinstance(node, _NAMED)]
        self.defined = {node.name for node in ast.walk(root) if isinstance(node, (*_NAMED, ast.ClassDef))}

    def uses(self, name: Name) -> Iterator[ast.expr]:
        if name.is_attribute:
            yield from (node for node in ast.walk(self._root) if isinstance(node, ast.Attribute) and node.attr == name.name)
            return
        scope = self._scope_at(name)
        for node in ast.walk(self._root):
            if isinstance(node, ast.Name) and node.id == name.name and self._binding_scope(node, name.name) is scope:
                yield node

    def _scope_at(self, name: Name) -> ast.AST:
        """Return the function, or the module, that the name belongs to."""
        if not name.line:
            return self._root
        functions = [node for node in ast.walk(self._root) if isinstance(node, _FUNCTIONS) and _first_line(node) == name.line]
        if not functions:
            return self._root
        body = functions[0].body
        return self._binding_scope(body[0] if isinstance(body, list) else body, name.name)

    def _ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        ancestor = self._parents.get(node)
        while ancestor is not None:
            yield ancestor
            ancestor = self._parents.get(ancestor)

    def _binding_scope(self, node: ast.AST, name: str) -> ast.AST:
        for ancestor in self._ancestors(node):
            if isinstance(ancestor, _FUNCTIONS):
                known = self._kind_of_binding(ancestor, name)
                if known == "global":
                    break
                if known:
                    return ancestor
        return self._root

    def _kind_of_binding(self, function: ast.AST, name: str) -> str:
        """Return "local" or "global", as the function binds the name; "" if it does not: then an outer scope does."""
        arguments = function.args  # type: ignore[attr-defined]
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        scope = "local" if any(each is not None and each.arg == name for each in every) else ""
        waiting = list(ast.iter_child_nodes(function))
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Global) and name in node.names:
                return "global"
            if isinstance(node, ast.Nonlocal) and name in node.names:
                return ""
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
                scope = "local"
            if not isinstance(node, _SCOPES):
                waiting += ast.iter_child_nodes(node)
        return scope

    def inner(self, node: ast.expr) -> ast.expr:
        """Return the entry that a use reads: ``kept["loss"]``, ``kept.setdefault(key, [])``; ``node`` if it reads none."""
        while True:
            parent = self._parents.get(node)
            if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Load):
                node = parent
                continue
            call = self._parents.get(parent) if isinstance(parent, ast.Attribute) and parent.attr in RETURNING_ENTRIES else None
            if not isinstance(call, ast.Call) or call.func is not parent:
                return node
            node = call

    def adding(self, node: ast.expr) -> ast.stmt | ast.expr | None:
        """Return the call or assignment that adds to the object; None if this use adds nothing."""
        parent = self._parents.get(node)
        outer = None if parent is None else self._parents.get(parent)
        if isinstance(parent, (ast.Assign, ast.AugAssign)) and isinstance(getattr(node, "ctx", None), ast.Store):
            return self._assigning(node)
        if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Store):
            return outer if isinstance(outer, ast.stmt) else None
        if isinstance(parent, ast.Attribute) and isinstance(outer, ast.Call) and outer.func is parent and parent.attr in ADDING:
            return outer
        return None

    def adding_within(self, node: ast.expr) -> ast.stmt | None:
        """Return what adds to an entry by its key: ``kept["loss"] += [x]``, ``kept["loss"] = numpy.append(kept["loss"], x)``."""
        entry = self._parents.get(node)
        return self._assigning(entry) if isinstance(entry, ast.Subscript) and entry.value is node else None

    def _assigning(self, target: ast.expr) -> ast.stmt | None:
        statement = self._parents.get(target)
        if not isinstance(statement, (ast.Assign, ast.AugAssign)) or not isinstance(getattr(target, "ctx", None), ast.Store):
            return None
        return statement if isinstance(statement, ast.AugAssign) or _mentions(statement.value, target) else None

    def may_have_key(self, node: ast.expr, key: str) -> bool:
        """Return whether a use may be of the entry with this key; False only if it names another key."""
        parent = self._parents.get(node)
        outer = None if parent is None else self._parents.get(parent)
        index: ast.AST | None = parent.slice if isinstance(parent, ast.Subscript) and parent.value is node else None
        if isinstance(parent, ast.Attribute) and parent.attr in RETURNING_ENTRIES and isinstance(outer, ast.Call) and outer.args:
            index = outer.args[0]
        value = index.value if isinstance(index, ast.Constant) else None
        return not key or type(value) not in (str, int) or repr(value)[:50] == key

    def parameter(self, node: ast.expr) -> _Parameter | None:
        """Return the parameter that the object is passed to, if the file has one function of the called name; else None."""
        parent = self._parents.get(node)
        call = self._parents.get(parent) if isinstance(parent, ast.keyword) else parent
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func is node:
            return None
        functions = [each for each in self._functions if each.name == call.func.id]
        if len(functions) != 1 or isinstance(self._parents.get(functions[0]), ast.ClassDef):
            return None
        arguments = functions[0].args
        positional = [each.arg for each in [*arguments.posonlyargs, *arguments.args]]
        if isinstance(parent, ast.keyword):
            name = parent.arg if parent.arg in [*positional, *(each.arg for each in arguments.kwonlyargs)] else None
        else:
            is_plain = not any(isinstance(each, ast.Starred) for each in call.args) and node in call.args
            name = positional[call.args.index(node)] if is_plain and call.args.index(node) < len(positional) else None
        return None if name is None else _Parameter(name, _first_line(functions[0]), call)

    def repeats(self, statement: ast.AST, name: Name) -> bool:
        """Return whether a statement may run repeatedly while the name's scope exists: in a loop or a called function."""
        scope = self._root if name.is_attribute else self._scope_at(name)
        for ancestor in self._ancestors(statement):
            if ancestor is scope:
                return False
            if isinstance(ancestor, (ast.For, ast.AsyncFor, ast.While, ast.comprehension, *_FUNCTIONS)):
                return True
        return False

    def may_get_another_name(self, node: ast.expr, defined: set[str]) -> bool:
        """Return whether the same object may get another name."""
        parent = self._parents.get(node)
        if isinstance(parent, (ast.For, ast.comprehension)):
            return parent.iter is node and isinstance(node, ast.Call)  # for x in kept.values(): x is another name of an entry
        if isinstance(parent, (ast.List, ast.Tuple)) and isinstance(self._parents.get(parent), (ast.Call, ast.Subscript)):
            return self.may_get_another_name(parent, defined)  # numpy.concatenate([kept, x]), numpy.r_[kept, x]
        if isinstance(parent, ast.Attribute) and parent.attr in ADDING:  # add = kept.append
            outer = self._parents.get(parent)
            return not isinstance(outer, ast.Call) or outer.func is not parent
        if isinstance(parent, ast.keyword):
            node, parent = parent, self._parents.get(parent)  # type: ignore[assignment]
        if isinstance(parent, ast.Call) and parent.func is not node:
            name = parent.func.attr if isinstance(parent.func, ast.Attribute) else getattr(parent.func, "id", "")
            return name in defined
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            return parent.value is node
        return isinstance(parent, (ast.Yield, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Starred)) and not isinstance(
            getattr(node, "ctx", None), ast.Store
        )


def _first_line(function: ast.AST) -> int:
    decorators = getattr(function, "decorator_list", [])
    return int(decorators[0].lineno if decorators else function.lineno)  # type: ignore[attr-defined]


def _mentions(value: ast.expr, node: ast.expr) -> bool:
    """Return whether a value contains the same expression as the node: ``kept = numpy.append(kept, x)``."""
    dumped = ast.dump(node).replace("Store()", "Load()")
    return any(ast.dump(each) == dumped for each in ast.walk(value) if type(each) is type(node))
