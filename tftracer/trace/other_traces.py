"""What the answers about a trace take from other traces of its run: rates of one trace mislead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

#: With fewer traces nothing is claimed of an op's usual time or rate.
LEAST_TRACES = 4


class AskedOfOthers(NamedTuple):
    """A method of ``Answers`` that each of the others is asked, and how many of them it takes."""

    method: str
    arguments: Mapping[str, Any]
    least: int
    most: int


#: By the analysis that is given their answers, in its argument ``others``.
ASKED_OF_OTHERS = {
    "verdict": AskedOfOthers("op_totals", {"by": "name"}, LEAST_TRACES - 1, LEAST_TRACES - 1),
    "roofline": AskedOfOthers("best_rates", {}, 1, 7),
}

#: The answers of the others, by analysis.
OfOthers = Mapping[str, Sequence[Mapping[str, Any]]]
NO_OTHERS: OfOthers = {}
