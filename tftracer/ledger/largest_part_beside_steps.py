"""Finds what took most time outside usual steps. The verdict on a trace names it, because a trace shows only one step."""

from __future__ import annotations

from typing import Any, NamedTuple

from tftracer.contract.ledger import Ledger, LedgerItem, LedgerKind, LedgerPart
from tftracer.ledger.parts_of_wall_time import CAUSE_NAMES

#: Parts of the ledger that a training does repeatedly outside its usual steps.
KINDS: tuple[LedgerKind, ...] = ("checkpoints", "evaluation", "slow")
#: Parts that occur once in a training.
ONCE: tuple[LedgerKind, ...] = ("start", "end")
#: A smaller share of the time since the first step is not mentioned.
MIN_SHARE = 0.2
#: How the items of slow steps without a known cause begin.
UNEXPLAINED = tuple(CAUSE_NAMES.values())


class BesideSteps(NamedTuple):
    kind: LedgerKind
    share: float  # of the time since the training's first step
    text: str  # what took that time: "Checkpoints and summaries (Checkpoint.write)"; for slow steps the largest known cause

    def fields(self) -> dict[str, Any]:
        """Return it as fields of a trace's context."""
        return {"beside_kind": self.kind, "beside_share": self.share, "beside_text": self.text}


def beside_steps(ledger: Ledger) -> BesideSteps | None:
    """Return the largest part of ``KINDS``; None if its share is smaller than ``MIN_SHARE``.

    Slow steps count with the time of known causes.
    """
    training_s = sum(part["duration_s"] for part in ledger["parts"] if part["kind"] not in ONCE)
    largest = max((part for part in ledger["parts"] if part["kind"] in KINDS), key=_seconds, default=None)
    if largest is None or _seconds(largest) < MIN_SHARE * training_s:
        return None
    items = _items(largest)
    name = items[0]["name"] if items else ""
    text = name if largest["kind"] == "slow" else f"{largest['name']} ({name})" if name else largest["name"]
    return BesideSteps(largest["kind"], _seconds(largest) / training_s, text)


def _items(part: LedgerPart) -> list[LedgerItem]:
    """Return the items of a part, the longest first; of slow steps, those of known cause."""
    return [item for item in part["items"] if part["kind"] != "slow" or not item["name"].startswith(UNEXPLAINED)]


def _seconds(part: LedgerPart) -> float:
    return sum(item["duration_s"] for item in _items(part)) if part["kind"] == "slow" else part["duration_s"]
