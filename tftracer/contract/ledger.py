"""Where all of a process's wall time went, in parts that add up to it."""

from __future__ import annotations

from typing import Literal, TypedDict

#: The kinds of parts, in the page's order. start: before the first step. building: TensorFlow's tracing of functions, and the
#: extra time of first calls. input: the training waited for the next element of a dataset. slow: the extra time of slow steps.
#: python: between steps. suspended: the process was stopped or the machine asleep. tracer: tftracer itself. end: after the last
#: step. If several things happen at the same time, this time counts as the first of them in the list of docs/ledger.rst.
LedgerKind = Literal[
    "start", "building", "input", "steps", "slow", "python", "evaluation", "checkpoints", "suspended", "tracer", "end", "unknown"
]


class LedgerItem(TypedDict):
    """One item of a part."""

    name: str
    duration_s: float
    times: int | None  # number of steps or calls; None: not counted
    run_id: int | None  # its run; None: it belongs to no single run


class LedgerPart(TypedDict):
    kind: LedgerKind
    name: str
    duration_s: float
    permille: int  # thousandths of the wall time; all parts add up to exactly 1000
    items: list[LedgerItem]  # the longest first; they add up to the part, or to less
    text: str  # what is not known about it; "" if nothing


class Ledger(TypedDict):
    """GET /api/ledger. If nothing is known, ``parts`` is empty and ``text`` says why."""

    started_at: float | None  # start of the process, or of the recording if that is not known
    until: float | None  # epoch seconds, like ``started_at``
    duration_s: float
    parts: list[LedgerPart]  # only parts with time, in the order of LedgerKind
    largest: LedgerKind | None  # the largest part that can be reduced
    text: str  # a sentence about ``largest``
    advice: str  # how to reduce it
    doubts: list[str]  # what the parts do not show
