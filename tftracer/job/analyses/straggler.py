"""Finds the rank that the others wait for, how long, and why. Pure NumPy, on aligned times.

A rank waits from its arrival at a collective to the arrival of the last rank, except while it does other work. The
cause is the activity on which the late rank spent more time than the others: computing, waiting for input (or time outside
session.run, if its step began late), or communication that does not overlap with computing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tftracer.contract.job import CollectiveRow, Straggler
from tftracer.job.analyses.collectives import MISSING, Collectives
from tftracer.job.analyses.process_traces import AlignedTrace
from tftracer.trace.arrays.intervals import Cover, concatenated, distinct, is_in
from tftracer.trace.arrays.types import Float64, Int64
from tftracer.trace.model import NodeKind
from tftracer.trace.units import duration

Cause = Literal["compute", "input", "communication", "none", "uncertain"]
CAUSES: tuple[Cause, Cause, Cause] = ("compute", "input", "communication")
#: A rank that costs the others less than this share of the step is not a straggler.
SHARE = 0.02
WORKING = (NodeKind.COMPUTE, NodeKind.COPY, NodeKind.LAUNCH, NodeKind.SYNC)


@dataclass(frozen=True)
class Rank:
    """The activity of one process, on the reference clock."""

    title: str
    begin: int  # start of its first node, ns since the epoch
    end: int  # end of its last node
    compute: Cover
    input: Cover
    communication: Cover
    timed: bool = True  # whether its clock can be compared with the others'

    @property
    def busy(self) -> Cover:
        return self.compute | self.input


def rank_of(aligned: AlignedTrace, owner: int, timed: bool = True) -> Rank:
    """Return the activity of the process that recorded a trace. ``timed``: whether its clock is comparable."""
    kind, is_own = aligned.source.trace.kind, aligned.owner == owner
    start, end = aligned.start, aligned.end

    def cover(*kinds: NodeKind) -> Cover:
        is_of_kind = is_own & is_in(kind, kinds)
        return Cover.of(start[is_of_kind], end[is_of_kind])

    begin = int(start[is_own].min()) if is_own.any() else 0
    last = int(end[is_own].max()) if is_own.any() else 0
    compute, inputs, communication = cover(*WORKING), cover(NodeKind.INPUT), cover(NodeKind.COMMUNICATION)
    return Rank(aligned.source.title, begin, last, compute, inputs, communication, timed)


@dataclass(frozen=True)
class Waits:
    """The waits between ranks: ``waited_on[p][q]`` is the time in which p waited for q and was not busy."""

    arrival: Int64  # [collectives, ranks], MISSING if a rank did not take part
    last: Int64  # [collectives]
    spread: Int64  # [collectives] first to last arrival
    waiting: list[Cover]  # [ranks]
    waited_on: list[dict[int, Cover]]

    @classmethod
    def of(cls, arrival: Int64, ranks: Sequence[Rank]) -> Waits:
        present = arrival != MISSING
        last = np.where(present, arrival, np.iinfo(np.int64).min).argmax(axis=1)
        latest = arrival[np.arange(len(arrival)), last]
        first = np.where(present, arrival, np.iinfo(np.int64).max).min(axis=1)
        waited_on = [_waits_on(p, arrival[:, p], latest, last, rank) for p, rank in enumerate(ranks)]
        waiting = [_union(list(covers.values())) for covers in waited_on]
        return cls(arrival, last, latest - first, waiting, waited_on)

    def waited_for(self, q: int) -> float:
        """Return the mean time for which the other ranks waited for q."""
        others = [waited_on.get(q, Cover.empty()).length for p, waited_on in enumerate(self.waited_on) if p != q]
        return float(np.mean(others)) if others else 0.0

    def last_arrival(self, q: int) -> int | None:
        """Return the time of q's latest arrival at a collective that it reached after all other ranks; None if there is none."""
        late = (self.last == q) & (self.spread > 0)
        return int(self.arrival[late, q].max()) if late.any() else None


def _waits_on(p: int, arrival: Int64, latest: Int64, last: Int64, rank: Rank) -> dict[int, Cover]:
    waits = (arrival != MISSING) & (last != p) & (latest > arrival)
    busy = rank.busy
    return {int(q): Cover.of(arrival[w], latest[w]) - busy for q in distinct(last[waits]) if (w := waits & (last == q)).any()}


def _union(covers: Sequence[Cover]) -> Cover:
    return Cover.of(concatenated([c.start for c in covers]), concatenated([c.end for c in covers]))


def collective_rows(matched: Collectives, waits: Waits, ids: Sequence[str], sizes: Sequence[float | None]) -> list[CollectiveRow]:
    """Return the rows of the first ``len(sizes)`` collectives: the last rank, and the others' waiting times. ``sizes``: bytes."""
    result: list[CollectiveRow] = []
    for i, name in enumerate(matched.names[: len(sizes)]):
        arrival, last = waits.arrival[i], int(waits.last[i])
        waited = {ids[p]: float(arrival[last] - t) for p, t in enumerate(arrival) if t != MISSING and p != last}
        row: CollectiveRow = {
            "name": name,
            "op": matched.ops[i],
            "bytes": sizes[i],
            "last": ids[last],
            "spread_ns": float(waits.spread[i]),
            "waited_ns": waited,
        }
        result.append(row)
    return result


def stragglers(ranks: Sequence[Rank], waits: Waits, ids: Sequence[str], clock_error_ns: float) -> list[Straggler]:
    """Return all ranks, starting with the one that costs the others most. ``clock_error_ns``: smaller differences do not count.

    Without collectives no rank waits; then a rank is slower by the time that its step takes beyond the others' median.
    """
    result = [_straggler(q, ranks, waits, ids, clock_error_ns) for q in range(len(ranks))]
    return sorted(result, key=lambda s: -max(s["waited_for_ns"], s["slower_by_ns"]))


def _straggler(q: int, ranks: Sequence[Rank], waits: Waits, ids: Sequence[str], clock_error_ns: float) -> Straggler:
    step = max((r.end - r.begin for r in ranks), default=0)
    waited_for, until = waits.waited_for(q), waits.last_arrival(q)
    own = _parts(ranks[q], waits.waiting[q], ranks[q].end, _earliest(ranks[q], ranks, waits))
    slower = 0.0 if len(waits.last) else _excess_over_median(np.array([r.end - r.begin for r in ranks], float), q)
    cost = max(waited_for, slower)
    cause: Cause = "none"
    excess = np.zeros(3)
    comparable = len(ranks) > 1 and (ranks[q].timed or not len(waits.last))
    if comparable and cost > max(SHARE * step, clock_error_ns):
        cause, excess = _cause(q, ranks, waits, until)
    elif comparable and cost > SHARE * step:
        cause = "uncertain"
    came_last = int(((waits.last == q) & (waits.spread > clock_error_ns)).sum())
    return {
        "process": ids[q],
        "waited_for_ns": waited_for,
        "waiting_ns": float(waits.waiting[q].length),
        "slower_by_ns": slower,
        "cause": cause,
        "text": _text(ranks[q], cause, excess, waited_for, slower, came_last, len(waits.last), step),
        "compute_ns": float(own[0]),
        "input_ns": float(own[1]),
        "exposed_communication_ns": float(own[2]),
    }


def _earliest(rank: Rank, ranks: Sequence[Rank], waits: Waits) -> int:
    """Return when the rank could have begun: if the step has collectives, when the first rank began; else when it began."""
    return min(r.begin for r in ranks if r.timed) if len(waits.last) and rank.timed else rank.begin


def _parts(rank: Rank, waiting: Cover, until: int, earliest: int) -> Float64:
    """Return the ns of (compute, input, exposed communication) of a rank until a moment, not counting waits for other ranks."""
    window = Cover.span(earliest, until)
    compute = rank.compute & window
    late = Cover.span(earliest, rank.begin) & window
    waiting_for_input = ((rank.input & window) | late) - compute
    exposed = (rank.communication & window) - (compute | waiting_for_input | waiting)
    return np.array([compute.length, waiting_for_input.length, exposed.length], float)


def _cause(q: int, ranks: Sequence[Rank], waits: Waits, until: int | None) -> tuple[Cause, Float64]:
    """Return (the activity with the largest excess over the others' median until q arrived, each activity's excess in ns)."""
    parts = []
    for p, rank in enumerate(ranks):
        earliest = _earliest(rank, ranks, waits)
        parts.append(_parts(rank, waits.waiting[p], rank.end if until is None else until, earliest))
    others = np.median([part for p, part in enumerate(parts) if p != q and (ranks[p].timed or until is None)], axis=0)
    excess = np.asarray(parts[q] - others)
    largest = int(excess.argmax())
    return (CAUSES[largest] if excess[largest] > 0 else "none"), excess


def _excess_over_median(values: Float64, q: int) -> float:
    others = np.delete(values, q)
    return max(0.0, float(values[q] - np.median(others))) if len(others) else 0.0


WHY = {
    "compute": "it computed {} longer than the others",
    "input": "it spent {} longer waiting for input or between two steps",
    "communication": "its own communication took {} longer",
}


def _text(
    rank: Rank,
    cause: Cause,
    excess: Float64,
    waited_for: float,
    slower: float,
    came_last: int,
    collective_count: int,
    step: int,
) -> str:
    if collective_count and not rank.timed:
        return f"{rank.title} cannot be compared: nothing in this step ties its clock to the others'."
    if cause == "uncertain":
        cost = duration(max(waited_for, slower))
        return f"It is uncertain whether {rank.title} holds the others up: {cost} are less than the error of the clocks."
    if cause == "none":
        return f"{rank.title} does not hold the others up."
    why = WHY[cause].format(duration(float(excess[CAUSES.index(cause)])))
    if slower > waited_for:
        return f"{rank.title}'s step took {duration(slower)} longer than the others': {why}."
    waited = f"{duration(waited_for)} ({100 * waited_for / max(step, 1):.0f}% of the step)"
    return f"{rank.title} came last to {came_last} of {collective_count} collectives; the others waited {waited}: {why}."


def usual_suspects(steps: Sequence[Sequence[Straggler]], titles: dict[str, str]) -> list[Straggler]:
    """Combine the stragglers of several traced steps: figures summed, with the cause that cost most; worst first."""
    by_process: dict[str, list[Straggler]] = {}
    for step in steps:
        for one in step:
            by_process.setdefault(one["process"], []).append(one)
    result = [_suspect(process, seen, len(steps), titles.get(process, process)) for process, seen in by_process.items()]
    return sorted(result, key=lambda s: -max(s["waited_for_ns"], s["slower_by_ns"]))


def _suspect(process: str, seen: Sequence[Straggler], steps: int, title: str) -> Straggler:
    causing = [s for s in seen if s["cause"] in CAUSES]
    costs = {cause: sum(max(s["waited_for_ns"], s["slower_by_ns"]) for s in causing if s["cause"] == cause) for cause in CAUSES}
    cause: Cause = max(CAUSES, key=lambda c: costs[c]) if causing else "none"
    often = f"{title} held the others up in {len(causing)} of {steps} traced steps"
    text = f"{often}, {duration(sum(costs.values()))} in all, mostly by {cause}." if causing else f"{often}."
    return {
        "process": process,
        "waited_for_ns": sum(s["waited_for_ns"] for s in seen),
        "waiting_ns": sum(s["waiting_ns"] for s in seen),
        "slower_by_ns": sum(s["slower_by_ns"] for s in seen),
        "cause": cause,
        "text": text,
        "compute_ns": sum(s["compute_ns"] for s in seen),
        "input_ns": sum(s["input_ns"] for s in seen),
        "exposed_communication_ns": sum(s["exposed_communication_ns"] for s in seen),
    }
