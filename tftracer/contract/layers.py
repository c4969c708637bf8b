"""Where in the model a step's time and memory lie."""

from __future__ import annotations

from typing import Literal, TypedDict

from tftracer.contract.basics import Finding

LayerPhase = Literal["forward", "backward", "optimizer", "communication", "input", "variables"]


class Layer(TypedDict):
    """A name scope of the model, what lies in none, or scopes that were folded together."""

    parent: int  # position in ``layers`` of what it lies in, -1: nothing
    name: str  # the last part of the scope
    # input: the input pipeline; none: other ops in no layer, by what they are; others: scopes that have no entry of their own
    kind: Literal["layer", "input", "none", "others"]
    folded: int  # of others: how many scopes
    own: list[float]  # for each of ``phases``, without the layers in it: ns, or bytes
    node: int  # the longest execution of its own, or the largest piece of memory; -1: none


class Layers(TypedDict):
    """Where in the model the time of a step lies, or its memory at the peak (``of``)."""

    of: Literal["time", "memory"]
    phases: list[LayerPhase]  # of ``own``
    layers: list[Layer]  # what they lie in first; the largest of those that lie in one first
    total: float  # ns in which the devices were busy, or bytes
    in_no_layer: float  # without the input pipeline
    folded: int  # scopes that have no entry of their own
    allocator: str  # of memory: whose peak this is
    device: str
    at_ns: float  # when
    findings: list[Finding]
