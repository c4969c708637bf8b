"""Name the part of the model in which ops run, by the scopes in their names (``lstm/dense_1/MatMul``)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tftracer.trace.analyses.op_name_to_layer import is_inserted, place_of
from tftracer.trace.analyses.ops import Work
from tftracer.trace.arrays.groups import largest_first
from tftracer.trace.arrays.types import Bool, Float64
from tftracer.trace.model import Trace
from tftracer.trace.units import percent

MIN_SHARE = 0.5  # minimal part of the ops' time, for a scope to be named
CONCENTRATED = 1.5  # a scope is named if its share of these ops' time is this many times its share of all op time
NEARLY = 0.75  # an inner scope is named instead of the largest one if it has at least this part of the largest one's time
INNER = 2  # an outermost scope with at least this many inner scopes, which have most of its time, belongs to a model
MAX_LISTED = 3  # scopes that are listed
MAX_NAMES = 10_000  # only the names with the most time are read
_NUMBERED = re.compile(r"_\d+$")
#: Usual names of loops, branches and whole models, which do not tell one part of a model from another.
_USUAL = re.compile(r"(while|body|cond|then|else|branch|model|functional|sequential)(_|\d)*")


def scope_sentence(work: Work, trace: Trace, selected: Bool) -> str:
    """Return " 72% of that is in clip_by_global_norm."; "" if one op has half of the time, or no scope has.

    If the scope has nearly as large a share of the time of all ops (``CONCENTRATED``), return ``main_scope_sentence``.

    An op and its gradients count as a scope with the op's name. ``selected``: [work] the executions that the word "that" refers
    to.
    """
    by_name = _by_name(work, trace, work.self_ns * selected)
    total = float(by_name.sum())
    if not total or float(by_name.max()) >= MIN_SHARE * total:
        return ""
    scopes = _by_scope(trace, by_name)
    named = [scope for scope, spent in scopes.items() if spent.ns >= MIN_SHARE * total and not _says_nothing(scope)]
    innermost = max(named, key=_depth, default="")
    if not innermost:
        return ""
    all_by_name = _by_name(work, trace, work.self_ns)
    all_scopes, share = _by_scope(trace, all_by_name), scopes[innermost].ns / total
    if share < CONCENTRATED * all_scopes.get(innermost, _NO_TIME).ns / float(all_by_name.sum()):
        return _main_scope(all_by_name, all_scopes)
    return f" {percent(share)} of that is in {innermost}{scopes[innermost].and_gradients}."


def main_scope_sentence(work: Work, trace: Trace, self_ns: Float64) -> str:
    """Return " 93% of the op time is in encoder/attention and its gradients."; "" if no scope has half of it, or if
    one op has.

    The innermost scope that has nearly as much as the largest one (``NEARLY``) is named, but not the scope of a model.
    If no scope has half, but scopes that differ only by a number have it together, these are named. ``self_ns``: [work].
    """
    by_name = _by_name(work, trace, self_ns)
    return _main_scope(by_name, _by_scope(trace, by_name))


def _main_scope(by_name: Float64, scopes: Mapping[str, _Spent]) -> str:
    """Return the sentence of ``main_scope_sentence``. ``by_name``: [names] the times of ops; ``scopes``: the times by scope."""
    total = float(by_name.sum())
    if not total or float(by_name.max()) >= MIN_SHARE * total:
        return ""
    named = {scope: spent for scope, spent in scopes.items() if spent.ns >= MIN_SHARE * total and not _says_nothing(scope)}
    largest_ns = max((spent.ns for spent in named.values()), default=0.0)
    innermost = max((scope for scope in named if named[scope].ns >= NEARLY * largest_ns), key=_depth, default="")
    if innermost:
        inner = {scope.rpartition("/")[0] for scope in scopes if scope.startswith(f"{innermost}/")} - {innermost}
        inner_ns = sum(scopes[scope].ns for scope in inner if _depth(scope) == 1)
        if not _depth(innermost) and len(inner) >= INNER and inner_ns >= MIN_SHARE * named[innermost].ns:
            return ""
        return f" {percent(named[innermost].ns / total)} of the op time is in {innermost}{named[innermost].and_gradients}."
    return _numbered_scopes_sentence(scopes, total)


def _numbered_scopes_sentence(scopes: Mapping[str, _Spent], total: float) -> str:
    """Return " 61% of the op time is in stft_2, stft and 3 others like them." for scopes that differ only by a number."""
    alike: dict[str, list[str]] = {}
    for scope in sorted({scope.partition("/")[0] for scope in scopes if "/" in scope}):
        if not _says_nothing(scope):
            alike.setdefault(_NUMBERED.sub("", scope), []).append(scope)
    for numbered in alike.values():
        share = sum(scopes[scope].ns for scope in numbered) / total
        if share >= MIN_SHARE and len(numbered) > 1:
            longest = sorted(numbered, key=lambda scope: -scopes[scope].ns)
            shown = longest if len(longest) <= MAX_LISTED else longest[: MAX_LISTED - 1]
            others = f" and {len(longest) - len(shown)} others like them" if len(shown) < len(longest) else ""
            gradients = " and their gradients" if any(scopes[scope].and_gradients for scope in numbered) else ""
            return f" {percent(share)} of the op time is in {', '.join(shown)}{others}{gradients}."
    return ""


class _Spent(NamedTuple):
    """The time of the ops in a scope."""

    ns: float
    gradients_ns: float  # the part of it in which gradients of its ops were computed

    @property
    def and_gradients(self) -> str:
        return " and its gradients" if self.gradients_ns else ""


_NO_TIME = _Spent(0.0, 0.0)


def _depth(scope: str) -> int:
    return scope.count("/")


def _by_name(work: Work, trace: Trace, self_ns: Float64) -> Float64:
    """Return [names] the sums of ``self_ns`` ([work])."""
    return np.asarray(np.bincount(work.name, self_ns, minlength=len(trace.names)), np.float64)


def _path(name: str) -> tuple[Sequence[str], bool]:
    """Return (the parts of an op's name, without those that TensorFlow inserted; whether it computes a gradient).

    The name of a gradient gives the parts of the op whose gradient it is. The ops of an optimizer keep its scope.
    """
    scope, _, own = name.rpartition("/")
    place = place_of(scope)
    if place.phase == "backward":
        return place.path, True
    return ([*place.path, own], False) if place.phase == "forward" else (name.split("/"), False)


def _says_nothing(scope: str) -> bool:
    return all(is_inserted(part) or _USUAL.fullmatch(part) for part in scope.split("/"))


def _by_scope(trace: Trace, by_name: Float64) -> dict[str, _Spent]:
    """Add up the times of ops by their scopes, outer ones included. ``by_name``: [names]."""
    codes = largest_first(by_name, MAX_NAMES)
    scopes: dict[str, _Spent] = {}
    for text, ns in zip(trace.names.texts(codes), by_name[codes].tolist()):
        parts, is_gradient = _path(text) if ns else ((), False)
        for depth in range(1, len(parts) + 1):
            scope = "/".join(parts[:depth])
            spent = scopes.get(scope, _NO_TIME)
            scopes[scope] = _Spent(spent.ns + ns, spent.gradients_ns + ns * is_gradient)
    return scopes
