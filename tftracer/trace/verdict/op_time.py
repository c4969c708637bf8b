"""Where the op time of a process goes. Op time: the self times of all that computes in it, as in the table of ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tftracer.contract.trace import Sentence
from tftracer.trace.analyses.op_kinds import canonical
from tftracer.trace.analyses.ops import Work
from tftracer.trace.arrays.groups import largest_first
from tftracer.trace.arrays.types import Bool, Float64, Int32
from tftracer.trace.model import Trace
from tftracer.trace.units import duration, percent
from tftracer.trace.verdict.busy import not_held_up_ns, unhindered_ns
from tftracer.trace.verdict.step import MAX_EVIDENCE, Step, evidence_of, sentence

MAX_TYPES = 3  # that a sentence lists
LISTED = 0.01  # of the op time, for a type to be listed


@dataclass(frozen=True)
class OpTime:
    """``work``: an entry for each execution that computes. Arrays called ``selected`` have as many."""

    trace: Trace
    work: Work
    step: Step

    @classmethod
    def of(cls, step: Step) -> OpTime:
        return cls(step.trace, step.computing, step)

    @cached_property
    def total_ns(self) -> float:
        return float(self.work.self_ns.sum())

    @cached_property
    def kinds(self) -> list[str]:
        """[op types] what each does, whoever wrote it: `Transpose` of `_MklTranspose`."""
        return [canonical(op) for op in self.trace.ops]

    @cached_property
    def unhindered_ns(self) -> Float64:
        """[work] the self times, on a busy machine no longer than the ops need there (busy.py)."""
        return unhindered_ns(self.step, self.work, self.kinds)

    @cached_property
    def not_held_up_ns(self) -> Float64:
        """[work] the self times without what held single ops up (busy.py)."""
        return not_held_up_ns(self.step, self.work)

    def of_kinds(self, is_meant: Callable[[str], object]) -> Bool:
        """[work] the executions of kinds that ``is_meant`` accepts."""
        meant = np.array([bool(is_meant(kind)) for kind in self.kinds] or [False])
        selected: Bool = meant[self.work.op]
        return selected

    def share(self, selected: Bool) -> float:
        """Their share of the op time."""
        return float(self.work.self_ns[selected].sum()) / self.total_ns if self.total_ns else 0.0

    def lasting_share(self, selected: Bool) -> float:
        """Their share of the op time without the longest execution: on a busy machine a single one may have been interrupted."""
        times = self.work.self_ns[selected]
        longest = float(times.max(initial=0.0))
        return (float(times.sum()) - longest) / max(self.total_ns - longest, 1.0)

    def typical_share(self, selected: Bool) -> float:
        """``usual_share``; where no other trace of the run confirms it, no more than ``lasting_share``."""
        is_confirmed = self.step.usual_ns is not None
        return self.usual_share(selected) if is_confirmed else min(self.lasting_share(selected), self.usual_share(selected))

    def usual_share(self, selected: Bool) -> float:
        """Their share of the op time, but no more than by the times that ops need where nothing holds them up, and by the median
        and the shortest time of each op in several traces of the run, where those are known."""
        unhindered = self.unhindered_ns
        share = min(self.share(selected), float(unhindered[selected].sum()) / max(float(unhindered.sum()), 1.0))
        for times in (self.step.usual_ns, self.step.shortest_ns):
            total = _sum_of(times, self.work.name) if times is not None else 0.0
            if times is not None and total:
                share = min(share, _sum_of(times, self.work.name[selected]) / total)
        return share

    def share_of_step(self, selected: Bool) -> float:
        """What the step would lose without them: the same share of the time in which ops run."""
        return self.share(selected) * self.step.activity.compute.length / self.step.whole_ns

    def types(self, selected: Bool) -> str:
        """ "Transpose 43%, Cast 3%": the kinds that take most, with their shares of the op time."""
        total: dict[str, float] = {}
        by_type = np.bincount(self.work.op[selected], self.work.self_ns[selected])
        for code in np.flatnonzero(by_type).tolist():
            total[self.kinds[code]] = total.get(self.kinds[code], 0.0) + float(by_type[code])
        ranked = sorted(total.items(), key=lambda item: -item[1])[:MAX_TYPES]
        listed = [item for item in ranked if item[1] >= LISTED * self.total_ns] or ranked[:1]
        return ", ".join(f"{kind} {percent(ns / self.total_ns)}" for kind, ns in listed)

    def longest(self, selected: Bool) -> list[int]:
        """The nodes that took longest, for evidence."""
        rows = np.flatnonzero(selected)
        return [int(node) for node in self.work.node[rows[largest_first(self.work.duration[rows], MAX_EVIDENCE)]]]

    def sentence(
        self, code: str, selected: Bool, what: str, advice: str, count: tuple[str, float], then: str = "", gain: float = 1.0
    ) -> Sentence:
        """``what`` takes so much of the op time, with the types and the longest op of these executions; ``then`` follows.
        ``count``: the name and value of a number beside their time; ``gain``: what part of their time would go away."""
        nodes, spent = self.longest(selected), float(self.work.self_ns[selected].sum())
        return sentence(
            code,
            f"{what} {percent(self.share(selected))} of the op time ({self.types(selected)}; {duration(spent)}); the longest is "
            f"{self.step.describe(nodes[0])}.{then}",
            advice,
            gain * self.share_of_step(selected),
            {f"{code}_ns": spent, count[0]: count[1]},
            {**evidence_of(self.step, nodes, "ops"), "op": self.op(selected)},
        )

    def op(self, row: Bool) -> str:
        """The op type, as the trace names it, that takes most of their time."""
        return str(self.trace.ops[int(np.argmax(np.bincount(self.work.op[row], self.work.self_ns[row])))])


def _sum_of(usual: Float64, names: Int32) -> float:
    """Adds up the times of ops. Each op counts once, however often it ran."""
    return float(usual[np.bincount(names, minlength=len(usual)) > 0].sum())
