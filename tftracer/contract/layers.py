"""A step's time and memory by layers of the model."""

from __future__ import annotations

from typing import Literal, TypedDict

from tftracer.contract.basics import Finding

LayerPhase = Literal["forward", "backward", "optimizer", "communication", "input", "variables"]


class Layer(TypedDict):
    """A name scope of the model, ops in no scope, or scopes that were folded together."""

    parent: int  # position of its parent in ``layers``, -1: none
    name: str  # the last part of the scope
    # layer: a scope; input: the input pipeline; none: ops in no layer, one entry for each op type or optimizer; others: scopes
    # without a separate entry
    kind: Literal["layer", "input", "none", "others"]
    folded: int  # kind "others": number of scopes
    own: list[float]  # ns, or bytes, for each of ``phases``, without its child layers
    node: int  # node of its longest execution, or of its largest piece of memory, without its child layers; -1: none


class Layers(TypedDict):
    """The time of a step, or its memory at the peak (``of``), by layers of the model."""

    of: Literal["time", "memory"]
    phases: list[LayerPhase]  # the columns of ``own``
    layers: list[Layer]  # parents before their children; siblings by size, the largest first
    total: float  # ns in which the devices were busy, or bytes
    in_no_layer: float  # total of the ops in no layer, without the input pipeline
    folded: int  # number of scopes that have no separate entry
    allocator: str  # for memory: the allocator whose peak this is
    device: str
    at_ns: float  # for memory: time of the peak
    findings: list[Finding]
