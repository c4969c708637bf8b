"""Shares of the op time of a process. Op time is the sum of the self times of its ops, as in the table of ops."""

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
from tftracer.trace.verdict.scopes import scope_sentence
from tftracer.trace.verdict.step import MAX_EVIDENCE, Step, evidence_of, sentence
from tftracer.trace.verdict.undelayed_op_times import ns_capped_by_bytes, ns_without_outliers

MAX_TYPES = 3  # op types in a sentence
SHORT_DELAYS = 0.8  # delays are short if more than this part of the op time is left without them
NOTABLE_DIFFERENCE = 0.1  # a text also gives the share without delays if it differs from the share by at least this much
LISTED = 0.01  # minimal share of the op time, for an op type to be listed


@dataclass(frozen=True)
class OpTime:
    """The op time of a step. ``work`` has an entry for each computing execution; arrays called ``selected`` are masks of it."""

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
        """[op types] the canonical kind: `Transpose` for `_MklTranspose`."""
        return [canonical(op) for op in self.trace.ops]

    @cached_property
    def ns_capped_by_bytes(self) -> Float64:
        """[work] ``undelayed_op_times.ns_capped_by_bytes``."""
        return ns_capped_by_bytes(self.step, self.work, self.kinds)

    @cached_property
    def ns_without_outliers(self) -> Float64:
        """[work] ``undelayed_op_times.ns_without_outliers``."""
        return ns_without_outliers(self.step, self.work)

    def of_kinds(self, is_meant: Callable[[str], object]) -> Bool:
        """Return [work] the executions of kinds that ``is_meant`` accepts."""
        accepted = np.array([bool(is_meant(kind)) for kind in self.kinds] or [False])
        return accepted[self.work.op]

    def share(self, selected: Bool) -> float:
        """Return the share of the op time that the selected executions take."""
        return float(self.work.self_ns[selected].sum()) / self.total_ns if self.total_ns else 0.0

    @cached_property
    def undelayed_ns(self) -> Float64:
        """[work] the self times without delays of single ops; the self times if these delays are short."""
        times = self.ns_without_outliers
        return self.work.self_ns if float(times.sum()) > SHORT_DELAYS * self.total_ns else times

    def undelayed_share(self, selected: Bool) -> float:
        """Return the share of the op time without delays of single ops."""
        return float(self.undelayed_ns[selected].sum()) / max(float(self.undelayed_ns.sum()), 1.0)

    def share_without_longest(self, selected: Bool) -> float:
        """Return the share without the longest execution, which a busy machine may have interrupted."""
        times = self.work.self_ns[selected]
        longest = float(times.max(initial=0.0))
        return (float(times.sum()) - longest) / max(self.total_ns - longest, 1.0)

    def cautious_share(self, selected: Bool) -> float:
        """Return ``least_share``; if no other trace of the run confirms it, the smaller of it and ``share_without_longest``."""
        is_confirmed = self.step.usual_ns is not None
        return (
            self.least_share(selected) if is_confirmed else min(self.share_without_longest(selected), self.least_share(selected))
        )

    def least_share(self, selected: Bool) -> float:
        """Return the smallest of these shares of the op time: without delays of single ops, by the times capped by bytes and, if
        other traces of the run are known, by the median and by the shortest time of each op."""
        capped = np.fmin(self.ns_capped_by_bytes, self.undelayed_ns)
        share = min(self.undelayed_share(selected), float(capped[selected].sum()) / max(float(capped.sum()), 1.0))
        for times in (self.step.usual_ns if self.step.has_enough_traces else None, self.step.shortest_ns):
            total = _sum_of(times, self.work.name) if times is not None else 0.0
            if times is not None and total:
                share = min(share, _sum_of(times, self.work.name[selected]) / total)
        return share

    def share_of_step(self, selected: Bool) -> float:
        """Return the share of the step that would go away without these ops.

        That is the part of the step in which ops run, times the share of these ops, without delays of single ops.
        """
        return min(self.share(selected), self.least_share(selected)) * self.step.activity.compute.length / self.step.whole_ns

    def types(self, selected: Bool) -> str:
        """List the kinds with the most time, and their shares of the op time: "Transpose 43%, Cast 3%".

        If ``share_words`` names the share without what was held up, these shares are without it, too.
        """
        times = self.undelayed_ns if self._is_held_up(selected) else self.work.self_ns
        total: dict[str, float] = {}
        by_type = np.bincount(self.work.op[selected], times[selected])
        for code in np.flatnonzero(by_type).tolist():
            total[self.kinds[code]] = total.get(self.kinds[code], 0.0) + float(by_type[code])
        whole_ns = max(float(times.sum()), 1.0)
        ranked = sorted(total.items(), key=lambda item: -item[1])[:MAX_TYPES]
        listed = [item for item in ranked if item[1] >= LISTED * whole_ns] or ranked[:1]
        return ", ".join(f"{kind} {percent(ns / whole_ns)}" for kind, ns in listed)

    def longest(self, selected: Bool) -> list[int]:
        """Return the longest nodes, for evidence."""
        rows = np.flatnonzero(selected)
        return [int(node) for node in self.work.node[rows[largest_first(self.work.duration[rows], MAX_EVIDENCE)]]]

    def sentence(
        self, code: str, selected: Bool, subject: str, advice: str, count: tuple[str, float], then: str = "", gain: float = 1.0
    ) -> Sentence:
        """Say that ``subject`` takes its share of the op time, with the types and the longest op. ``then``: text after it.
        ``count``: name and value of another number of the sentence; ``gain``: the part of the time that would go away."""
        nodes, spent = self.longest(selected), float(self.work.self_ns[selected].sum())
        return sentence(
            code,
            f"{subject} {self.share_words(selected)} ({self.types(selected)}; {duration(spent)}); the longest is "
            f"{self.step.describe(nodes[0])}.{self.scope(selected)}{then}",
            advice,
            gain * self.share_of_step(selected),
            {f"{code}_ns": spent, count[0]: count[1]},
            {**evidence_of(self.step, nodes, "ops"), "op": self.op(selected)},
        )

    def share_words(self, selected: Bool) -> str:
        """Return the share of the op time in words: "35% of the op time, 88% without what was held up"."""
        share, undelayed = self.share(selected), self._undelayed_share(selected)
        without = f", {percent(undelayed)} without what was held up" if self._is_held_up(selected) else ""
        return f"{percent(share)} of the op time{without}"

    def _undelayed_share(self, selected: Bool) -> float:
        undelayed = self.undelayed_share(selected)
        return undelayed if undelayed > self.share(selected) else self.least_share(selected)

    def _is_held_up(self, selected: Bool) -> bool:
        """Return whether the share without what was held up differs so much that texts name it, too."""
        return abs(self._undelayed_share(selected) - self.share(selected)) >= NOTABLE_DIFFERENCE

    def scope(self, selected: Bool) -> str:
        """Name the scope of most of these ops, as a sentence (``scope_sentence``)."""
        return scope_sentence(self.work, self.trace, selected)

    def op(self, selected: Bool) -> str:
        """Return the op type with the most time, by the trace's name."""
        return str(self.trace.ops[int(np.argmax(np.bincount(self.work.op[selected], self.work.self_ns[selected])))])


def _sum_of(times_ns: Float64, names: Int32) -> float:
    """Add up the times of ops. Each op counts once, however often it ran. ``times_ns``: [names]."""
    return float(times_ns[np.bincount(names, minlength=len(times_ns)) > 0].sum())
