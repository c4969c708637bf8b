"""Every regular expression of the package, found in its source, and input that makes backtracking engines slow.

Run as a program: it tries each expression on such input of 50 kB. An attempt that takes half a second of processor time is ended
and printed; where the time is linear in the size, it takes a hundredth of that.
"""

from __future__ import annotations

import ast
import importlib
import random
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import tftracer
from tftracer.job.routes import routes
from tftracer.web.routes import API, PAGES

try:
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10 and before
    import sre_parse as parser

SIZE = 50_000
LIMIT_S = 0.5
MANY = 50  # a repetition of fewer cannot be pumped
METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")
#: Methods of our own that are given an expression, and what they do with it.
TAKERS = {"rows": "match"}
#: What expressions that are made of a function's own variables may be made of, by module.
LOCALS: dict[str, dict[str, str]] = {
    "tftracer.scripting.write_partition": {"where": "run=1/table=ops"},
    "tftracer.scripting.query": {"table": "ops"},
}
#: Some that are slow, to see that such are found: the first has held trainings.
SLOW = (
    (rb"(?im)^authorization:[ \t]*bearer[ \t]+([^\r\n]*?)[ \t]*\r?$", "findall"),
    (r"\w*Reader", "search"),
    (r"(\w+):(\S*)", "findall"),
    (r"/stream:([^/<]+)(?:<([^>]*)>)?$", "search"),
    (r".*?_inference_(\w+?)_\d+__", "match"),
    (r"(a|a)*b", "match"),
)
ALPHABET = " \t\r\n\0aZ_1-/:.,;=\"'<>[](){}#\\+%&?\xe4"


@dataclass(frozen=True)
class Expression:
    """``methods``: those of re that it is used with."""

    place: str
    pattern: re.Pattern[Any]
    methods: tuple[str, ...]


def modules() -> Iterator[tuple[str, ast.Module]]:
    root = Path(tftracer.__file__).parent
    for path in sorted(root.rglob("*.py")):
        name = ".".join(["tftracer", *path.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")
        yield name, ast.parse(path.read_text(encoding="utf-8"))


def _called(node: ast.AST) -> tuple[ast.expr, str] | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value, node.func.attr
    return None


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _uses(trees: Sequence[ast.Module]) -> dict[str, set[str]]:
    """The methods of each name that are used, anywhere."""
    uses: dict[str, set[str]] = {}
    for tree in trees:
        for node in ast.walk(tree):
            called = _called(node)
            if isinstance(node, ast.Attribute) and node.attr in METHODS:  # called, or handed on
                uses.setdefault(_name(node.value), set()).add(node.attr)
            elif called and called[1] in TAKERS and isinstance(node, ast.Call) and node.args:
                uses.setdefault(_name(node.args[0]), set()).add(TAKERS[called[1]])
    return uses


def _assigned(tree: ast.Module) -> dict[int, str]:
    """The name that the value of each plain assignment gets, by the line of the value."""
    return {
        node.value.lineno: _name(node.targets[0])
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and _called(node.value) is not None
    }


def expressions() -> list[Expression]:
    """Fails where the source makes an expression that cannot be evaluated here: LOCALS says what it is made of then."""
    found = []
    parsed = dict(modules())
    everywhere = _uses(list(parsed.values()))
    for name, tree in parsed.items():
        here, names = _uses([tree]), _assigned(tree)
        for node in ast.walk(tree):
            called = _called(node)
            if not called or _name(called[0]) != "re" or called[1] not in {"compile", *METHODS}:
                continue
            assert isinstance(node, ast.Call)
            scope = {**vars(importlib.import_module(name)), **LOCALS.get(name, {})}
            parts = [ast.unparse(node.args[0]), *(ast.unparse(k.value) for k in node.keywords if k.arg == "flags")]
            if called[1] in ("compile", "search", "match", "fullmatch"):
                parts += [ast.unparse(argument) for argument in node.args[1 if called[1] == "compile" else 2 :]]
            pattern = re.compile(*(eval(part, scope) for part in parts))
            variable = names.get(node.lineno, "")
            uses = (here if variable.startswith("_") else everywhere).get(variable, set())
            if not variable:  # one of several: used by the name of a loop's variable
                uses = set().union(*(methods for used, methods in here.items() if used.islower() and used != "re"))
            methods = {called[1]} if called[1] != "compile" else uses or {"search", "fullmatch"}
            found.append(Expression(f"{name}:{node.lineno}", pattern, tuple(sorted(methods))))
    return [*found, *_routes()]


def _routes() -> Iterator[Expression]:
    """Tornado matches the path of each request with these."""
    no_job: Any = None
    for route, handler, _ in [*API, *routes(no_job), *PAGES]:
        yield Expression(f"the route of {handler.__name__}", re.compile(f"{route}$"), ("match",))


# ---------------------------------------------------------------------------------------------------------------- hostile input


def _letter(items: Sequence[tuple[Any, Any]], chance: random.Random) -> str:
    """One that a class of characters has; for a negated one, one that is in none of its parts."""
    source = [chr(value) if str(kind) == "LITERAL" else "" for kind, value in items]
    ranges = [chr(chance.randint(*value)) for kind, value in items if str(kind) == "RANGE"]
    kinds = {"CATEGORY_WORD": "a1_", "CATEGORY_DIGIT": "17", "CATEGORY_SPACE": " \t\n"}
    categories = [chance.choice(kinds.get(str(value), "-!")) for kind, value in items if str(kind) == "CATEGORY"]
    inside = [one for one in [*source, *ranges, *categories] if one]
    if str(items[0][0]) == "NEGATE":
        return chance.choice([one for one in ALPHABET if one not in inside])
    return chance.choice(inside)


def sample(tree: Sequence[tuple[Any, Any]], chance: random.Random, more: int = 2) -> str:
    """Text that the expression would match, but for look-around. more: than the least number of repetitions, at most."""
    text = ""
    for kind, value in tree:
        name = str(kind)
        if name == "LITERAL":
            text += chr(value)
        elif name == "NOT_LITERAL":
            text += chance.choice([one for one in ALPHABET if one != chr(value)])
        elif name == "ANY":
            text += chance.choice(ALPHABET)
        elif name == "IN":
            text += _letter(value, chance)
        elif name == "BRANCH":
            text += sample(chance.choice(value[1]), chance, more)
        elif name == "SUBPATTERN":
            text += sample(value[-1], chance, more)
        elif "REPEAT" in name:
            text += "".join(sample(value[2], chance, more) for _ in range(min(value[1], value[0] + chance.randint(0, more))))
    return text


def repetitions(tree: Sequence[tuple[Any, Any]], before: list[Any]) -> Iterator[tuple[list[Any], Any]]:
    """Each repetition without a small bound: what stands before it, and what it repeats."""
    for kind, value in tree:
        name = str(kind)
        if name == "BRANCH":
            for branch in value[1]:
                yield from repetitions(branch, before)
        elif name == "SUBPATTERN":
            yield from repetitions(value[-1], before)
        elif "REPEAT" in name:
            if value[1] >= MANY:
                yield before, value[2]
            yield from repetitions(value[2], before)
        before = [*before, (kind, value)]


def attacks(pattern: re.Pattern[Any]) -> Iterator[str]:
    chance = random.Random(repr(pattern.pattern))  # the pattern itself may hold surrogates, which are no seed
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags)
    seen = set()
    for before, body in [([], tree), *repetitions(tree, [])]:
        prefix = sample(before, chance, 0)
        bodies = [sample(body, chance) for _ in range(4)]
        pumps = [*ALPHABET, *bodies, prefix, prefix + bodies[0], sample(before, chance) + bodies[1]]
        for pump in filter(None, pumps):
            for end in ("", "\r!", "\0"):
                text = (prefix + pump * (SIZE // len(pump)))[: SIZE + len(prefix)] + end
                if text not in seen:
                    seen.add(text)
                    yield text


class TooSlow(Exception):
    """The attempt has taken LIMIT_S of processor time."""


def _end(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def slow_input(expression: Expression) -> str | None:
    """The beginning and end of text that the expression takes long for."""
    for text in attacks(expression.pattern):
        given = text.encode("utf-8", "surrogatepass") if isinstance(expression.pattern.pattern, bytes) else text
        for method in expression.methods:
            signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
            try:
                result = getattr(expression.pattern, method)(*([given[:0], given] if "sub" in method else [given]))
                if method == "finditer":
                    list(result)
            except TooSlow:
                return f"{method} {text[:30]!r}...{text[-10:]!r}"
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def main() -> None:
    signal.signal(signal.SIGPROF, _end)
    for pattern, method in SLOW:
        assert slow_input(Expression("", re.compile(pattern), (method,))), f"{pattern!r} is not found to be slow"
    found = expressions()
    slow = 0
    for expression in found:
        if reason := slow_input(expression):
            print(expression.place, repr(expression.pattern.pattern), reason, flush=True)
            slow += 1
    print(f"{len(found)} expressions tried")
    sys.exit(bool(slow))


if __name__ == "__main__":
    main()
