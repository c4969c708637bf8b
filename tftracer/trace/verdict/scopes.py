"""Name the part of the model in which ops run, by the scopes in their names (``lstm/dense_1/MatMul``)."""

from __future__ import annotations

import re

import numpy as np

from tftracer.trace.analyses.op_name_to_layer import is_gradient, is_inserted
from tftracer.trace.analyses.ops import Work
from tftracer.trace.arrays.groups import largest_first
from tftracer.trace.arrays.types import Bool, Float64
from tftracer.trace.model import Trace
from tftracer.trace.units import percent

MIN_SHARE = 0.5  # minimal part of the ops' time, for a scope to be named
CONCENTRATED = 1.5  # a scope is named if its share of these ops' time is this many times its share of all op time
MAX_NAMES = 10_000  # only the names with the most time are read
#: Usual names of loops, branches and whole models, which do not tell one part of a model from another.
_USUAL = re.compile(r"(while|body|cond|then|else|branch|model|functional|sequential)(_|\d)*")


def scope_sentence(work: Work, trace: Trace, selected: Bool) -> str:
    """Return " 72% of that is in clip_by_global_norm."; "" if one op has half of the time, if no scope has half
    of it, or if the scope has nearly as large a share of the time of all ops (``CONCENTRATED``).

    ``selected``: [work] the executions that the word "that" refers to.
    """
    by_name = _by_name(work, trace, selected)
    total = float(by_name.sum())
    if not total or float(by_name.max()) >= MIN_SHARE * total:
        return ""
    spent = _by_scope(trace, by_name)
    scopes = [scope for scope, ns in spent.items() if ns >= MIN_SHARE * total and not _says_nothing(scope)]
    innermost = max(scopes, key=lambda scope: scope.count("/"), default="")
    if not innermost:
        return ""
    of_all = _by_name(work, trace, np.ones(len(work.name), bool))
    share, share_of_all = spent[innermost] / total, _by_scope(trace, of_all).get(innermost, 0.0) / float(of_all.sum())
    return f" {percent(share)} of that is in {innermost}." if share >= CONCENTRATED * share_of_all else ""


def _by_name(work: Work, trace: Trace, selected: Bool) -> Float64:
    """Return [names] the self times of the selected executions."""
    return np.asarray(np.bincount(work.name[selected], work.self_ns[selected], minlength=len(trace.names)), np.float64)


def _scopes(name: str) -> list[str]:
    """Return the scopes of an op's name, the outermost first, without TensorFlow's scope for gradients."""
    parts = name.split("/")[:-1]
    gradients_at = next((number for number, part in enumerate(parts) if is_gradient(part)), len(parts))
    return parts[:gradients_at] + parts[gradients_at + 1 :]


def _says_nothing(scope: str) -> bool:
    return all(is_inserted(part) or _USUAL.fullmatch(part) for part in scope.split("/"))


def _by_scope(trace: Trace, by_name: Float64) -> dict[str, float]:
    """Add up the times of ops by their scopes, outer ones included. ``by_name``: [names]."""
    codes = largest_first(by_name, MAX_NAMES)
    spent: dict[str, float] = {}
    for text, ns in zip(trace.names.texts(codes), by_name[codes].tolist()):
        parts = _scopes(text) if ns else []
        for depth in range(1, len(parts) + 1):
            scope = "/".join(parts[:depth])
            spent[scope] = spent.get(scope, 0.0) + ns
    return spent
