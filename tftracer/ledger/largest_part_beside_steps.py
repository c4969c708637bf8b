"""Finds what took most time outside the steps. The verdict on a trace names it, because a trace shows only one step."""

from __future__ import annotations

from typing import NamedTuple

from tftracer.contract.ledger import Ledger, LedgerKind

#: Parts of the ledger that a training does repeatedly outside its steps.
KINDS: tuple[LedgerKind, ...] = ("checkpoints", "evaluation")
#: Parts that occur once in a training.
ONCE: tuple[LedgerKind, ...] = ("start", "end")
#: A smaller share of the time since the first step is not mentioned.
MIN_SHARE = 0.2


class BesideSteps(NamedTuple):
    share: float  # of the time since the training's first step
    text: str  # what took that time: "Checkpoints and summaries (Checkpoint.write)"


def beside_steps(ledger: Ledger) -> BesideSteps | None:
    """Return the largest part of ``KINDS``; None if its share is smaller than ``MIN_SHARE``."""
    training_s = sum(part["duration_s"] for part in ledger["parts"] if part["kind"] not in ONCE)
    largest = max((part for part in ledger["parts"] if part["kind"] in KINDS), key=lambda part: part["duration_s"], default=None)
    if largest is None or largest["duration_s"] < MIN_SHARE * training_s:
        return None
    longest_item = f" ({largest['items'][0]['name']})" if largest["items"] else ""
    return BesideSteps(largest["duration_s"] / training_s, f"{largest['name']}{longest_item}")
