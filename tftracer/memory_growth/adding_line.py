"""The one line of the user's that adds to a list, a dict, a text or an array of a known name, read from the source. Pure.

A line is told only if it alone adds to that name, in a loop or in a function of its own, and if nothing else may add to the same
object under another name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import NamedTuple

#: Methods that add, and those that hand out what lies within.
ADDING = frozenset(["append", "appendleft", "extend", "extendleft", "add", "insert", "update", "setdefault"])
WITHIN = frozenset(["setdefault", "get", "values", "items", "pop"])
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)


class Name(NamedTuple):
    """``line``: within the function whose local it is; 0: a global. ``is_attribute``: of any object of the user's classes.
    ``is_within``: what grows is an entry of it, as in ``kept["loss"].append(1)``.
    """

    file: str
    name: str
    line: int = 0
    is_attribute: bool = False
    is_within: bool = False


def adding_line(of: Name, sources: Mapping[str, str]) -> str:
    """ "train.py:12"; "" if no line, or more than one, is known to add. ``sources``: the user's files -> their texts."""
    files = sources if of.is_attribute else {of.file: sources.get(of.file, "")}
    try:
        trees = {file: _Tree(ast.parse(text)) for file, text in files.items()}
    except (SyntaxError, ValueError, RecursionError):
        return ""
    lines: set[tuple[str, int]] = set()
    made = {name for tree in trees.values() for name in tree.defined}
    for file, tree in trees.items():
        for node in tree.uses(of):
            inner = tree.inner(node)
            statement = tree.adding(inner)
            if statement is not None and (inner is not node or not of.is_within):
                if tree.repeats(statement, of):
                    lines.add((file, statement.lineno))
            elif tree.is_handed_on(node, made) or (of.is_within and tree.is_handed_on(inner, made)):
                return ""
    if len(lines) != 1:
        return ""
    ((file, line),) = lines
    return f"{PurePath(file.replace(chr(92), '/')).name}:{line}"


class _Tree:
    def __init__(self, root: ast.Module) -> None:
        self._root = root
        self._parents = {child: node for node in ast.walk(root) for child in ast.iter_child_nodes(node)}
        self.defined = {
            node.name for node in ast.walk(root) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        }

    def uses(self, of: Name) -> Iterator[ast.expr]:
        if of.is_attribute:
            yield from (node for node in ast.walk(self._root) if isinstance(node, ast.Attribute) and node.attr == of.name)
            return
        scope = self._scope_at(of)
        for node in ast.walk(self._root):
            if isinstance(node, ast.Name) and node.id == of.name and self._binding(node, of.name) is scope:
                yield node

    def _scope_at(self, of: Name) -> ast.AST:
        """The function, or the module, that the name belongs to."""
        if not of.line:
            return self._root
        inside = [node for node in ast.walk(self._root) if isinstance(node, _FUNCTIONS) and _first_line(node) == of.line]
        return (
            self._binding(inside[0].body[0] if isinstance(inside[0].body, list) else inside[0].body, of.name)
            if inside
            else self._root
        )

    def _above(self, node: ast.AST) -> Iterator[ast.AST]:
        above = self._parents.get(node)
        while above is not None:
            yield above
            above = self._parents.get(above)

    def _binding(self, node: ast.AST, name: str) -> ast.AST:
        for above in self._above(node):
            if isinstance(above, _FUNCTIONS):
                known = self._binds(above, name)
                if known == "global":
                    break
                if known:
                    return above
        return self._root

    def _binds(self, function: ast.AST, name: str) -> str:
        arguments = function.args  # type: ignore[attr-defined]
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        found = "local" if any(each is not None and each.arg == name for each in every) else ""
        waiting = list(ast.iter_child_nodes(function))
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Global) and name in node.names:
                return "global"
            if isinstance(node, ast.Nonlocal) and name in node.names:
                return ""
            if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
                found = "local"
            if not isinstance(node, _SCOPES):
                waiting += ast.iter_child_nodes(node)
        return found

    def inner(self, node: ast.expr) -> ast.expr:
        """What a use takes out of it: ``kept["loss"]``, ``kept.setdefault(key, [])``; itself, if nothing."""
        while True:
            parent = self._parents.get(node)
            if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Load):
                node = parent
                continue
            call = self._parents.get(parent) if isinstance(parent, ast.Attribute) and parent.attr in WITHIN else None
            if not isinstance(call, ast.Call) or call.func is not parent:
                return node
            node = call

    def adding(self, node: ast.expr) -> ast.stmt | ast.expr | None:
        """What adds to the object: a call, an assignment; None where this use of it adds nothing."""
        parent = self._parents.get(node)
        above = None if parent is None else self._parents.get(parent)
        if isinstance(parent, (ast.Assign, ast.AugAssign)) and isinstance(getattr(node, "ctx", None), ast.Store):
            return parent if isinstance(parent, ast.AugAssign) or _mentions(parent.value, node) else None
        if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.ctx, ast.Store):
            return above if isinstance(above, ast.stmt) else None
        if isinstance(parent, ast.Attribute) and isinstance(above, ast.Call) and above.func is parent and parent.attr in ADDING:
            return above
        return None

    def repeats(self, statement: ast.AST, of: Name) -> bool:
        """Whether it may run again and again while the name is what it is: in a loop, or in a function that is called."""
        scope = self._root if of.is_attribute else self._scope_at(of)
        for above in self._above(statement):
            if above is scope:
                return False
            if isinstance(above, (ast.For, ast.AsyncFor, ast.While, ast.comprehension, *_FUNCTIONS)):
                return True
        return False

    def is_handed_on(self, node: ast.expr, made: set[str]) -> bool:
        """Whether another name may be given to the same object."""
        parent = self._parents.get(node)
        if isinstance(parent, (ast.For, ast.comprehension)):
            return parent.iter is node and isinstance(node, ast.Call)  # .values()
        if isinstance(parent, ast.keyword):
            node, parent = parent, self._parents.get(parent)  # type: ignore[assignment]
        if isinstance(parent, ast.Call) and parent.func is not node:
            name = parent.func.attr if isinstance(parent.func, ast.Attribute) else getattr(parent.func, "id", "")
            return name in made
        if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr)):
            return parent.value is node
        return isinstance(parent, (ast.Yield, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.Starred)) and not isinstance(
            getattr(node, "ctx", None), ast.Store
        )


def _first_line(function: ast.AST) -> int:
    decorators = getattr(function, "decorator_list", [])
    return int(decorators[0].lineno if decorators else function.lineno)  # type: ignore[attr-defined]


def _mentions(value: ast.expr, node: ast.expr) -> bool:
    """``kept = numpy.append(kept, x)``."""
    name = ast.dump(node).replace("Store()", "Load()")
    return any(ast.dump(each) == name for each in ast.walk(value) if type(each) is type(node))
