"""Finds what took most time outside usual steps. The verdict on a trace names it, because a trace shows only one step."""

from __future__ import annotations

from typing import NamedTuple

from tftracer.contract.ledger import Ledger, LedgerItem, LedgerKind, LedgerPart
from tftracer.ledger.parts_of_wall_time import CAUSE_NAMES

#: Parts of the ledger that a training does repeatedly outside a run's usual steps. "steps": those of other runs.
KINDS: tuple[LedgerKind, ...] = ("checkpoints", "evaluation", "slow", "steps")
#: Parts that occur once in a training.
ONCE: tuple[LedgerKind, ...] = ("start", "end")
#: A smaller share of the time since the first step is not mentioned; OTHER_RUNS: of other runs' steps.
MIN_SHARE, OTHER_RUNS = 0.2, 0.7
#: How the items of slow steps without a known cause begin.
UNEXPLAINED = tuple(CAUSE_NAMES.values())


class BesideSteps(NamedTuple):
    """Fields of a trace's context."""

    beside_kind: LedgerKind
    beside_share: float  # of the time since the training's first step
    beside_text: str  # what took that time: "Checkpoints and summaries (Checkpoint.write)"; of slow steps and runs, the largest


def beside_steps(ledger: Ledger, title: str) -> BesideSteps | None:
    """Return the largest part of ``KINDS`` for a trace of a run; None if its share is too small.

    Slow steps count with the time of known causes. ``title``: the run's; runs of the same function with other arguments, or
    with other feeds, count as the same run.
    """
    training_s = sum(part["duration_s"] for part in ledger["parts"] if part["kind"] not in ONCE)
    seconds = [(_seconds(part, title), part) for part in ledger["parts"] if part["kind"] in KINDS]
    length, largest = max(seconds, key=lambda each: each[0], default=(0.0, None))
    if largest is None or length < (OTHER_RUNS if largest["kind"] == "steps" else MIN_SHARE) * training_s:
        return None
    items = _items(largest, title)
    name = items[0]["name"] if items else ""
    is_plain = largest["kind"] in ("slow", "steps")
    text = name if is_plain else f"{largest['name']} ({name})" if name else largest["name"]
    return BesideSteps(largest["kind"], length / training_s, text)


def _items(part: LedgerPart, title: str) -> list[LedgerItem]:
    """Return the items of a part, the longest first; of slow steps, those of known cause; of steps, those of other runs."""
    if part["kind"] == "steps":
        return [item for item in part["items"] if _name(item["name"]) != _name(title)]
    return [item for item in part["items"] if part["kind"] != "slow" or not item["name"].startswith(UNEXPLAINED)]


def _seconds(part: LedgerPart, title: str) -> float:
    """Return the time of the items that ``_items`` returns. A part lists its longest items only; of steps, the rest is of other
    runs, too, if at most one listed run has the name of this one."""
    items = _items(part, title)
    listed_s = sum(item["duration_s"] for item in items)
    if part["kind"] == "slow":
        return listed_s
    if part["kind"] != "steps":
        return part["duration_s"]
    has_rest = len(part["items"]) - len(items) <= 1
    return listed_s + has_rest * (part["duration_s"] - sum(item["duration_s"] for item in part["items"]))


def _name(title: str) -> str:
    return title.partition(" (")[0]
