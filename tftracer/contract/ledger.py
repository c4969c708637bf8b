"""Where all of a process's wall time went, in parts that add up to it."""

from __future__ import annotations

from typing import Literal, TypedDict

#: In the page's order. start: before the first step. building: functions traced, and what first calls took beyond later ones.
#: input: the training waited for the next element of a dataset. slow: what slow steps took beyond the usual. python: between
#: steps. suspended: the process was stopped or the machine asleep. tracer: tftracer itself. end: after the last step.
#: A moment in which several things happen counts as one of them by the order in docs/ledger.rst.
LedgerKind = Literal[
    "start", "building", "input", "steps", "slow", "python", "evaluation", "checkpoints", "suspended", "tracer", "end", "unknown"
]


class LedgerItem(TypedDict):
    """What a part is made of."""

    name: str
    duration_s: float
    times: int | None  # steps, calls; None: not counted
    run_id: int | None  # the run that it belongs to, where it is one run's


class LedgerPart(TypedDict):
    kind: LedgerKind
    name: str
    duration_s: float
    permille: int  # of the wall time; those of all parts add up to exactly 1000
    items: list[LedgerItem]  # the longest first; they add up to the part, or to less
    text: str  # what is not known of it, in words; "" if nothing


class Ledger(TypedDict):
    """GET /api/ledger. Without parts where nothing is known: ``text`` says why."""

    started_at: float | None  # of the process; where that is not known, of the recording
    until: float | None
    duration_s: float
    parts: list[LedgerPart]  # those with any time, in the order of their kinds
    largest: LedgerKind | None  # the largest part that could become smaller
    text: str  # what that is, in a sentence
    advice: str  # what to do about it
    doubts: list[str]  # what the parts do not show
