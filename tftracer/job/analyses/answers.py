"""The analyses of one step of a job: one timeline of all processes, and which of them is slow. Pure; thread-safe.

The merged trace has the analyses of any trace (``trace.answers.Answers``). This module adds the groups of lanes, the clocks, the
collectives and the stragglers, and takes a node's details from the process that recorded it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from tftracer.contract.basics import Finding
from tftracer.contract.job import ClockOffset, JobAnalysis, JobTensor, Straggler
from tftracer.contract.trace import CriticalPath, Link, NodeDetail, NodeRef, Sentence, Timeline, Verdict
from tftracer.errors import UnknownError
from tftracer.job.analyses import straggler
from tftracer.job.analyses.clocks import Clock, Observation, estimate
from tftracer.job.analyses.collectives import MISSING, Collectives, find_collectives, observations, result_bytes
from tftracer.job.analyses.findings import NO_GRAPHS, clock_findings, missing_processes, process_findings
from tftracer.job.analyses.merged import Merged, merge
from tftracer.job.analyses.network_traffic import links_and_tensors, slow_link
from tftracer.job.analyses.process_traces import Owners, ProcessTrace, align
from tftracer.job.analyses.straggler import Rank, Waits, rank_of
from tftracer.trace.analyses.critical_path import MAX_STEPS
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.types import Int64
from tftracer.trace.model import TraceContext

MAX_COLLECTIVES = 5000
ADVICE = {
    "compute": "Compare its ops with another rank's: does it get more work, a slower device, or share its machine?",
    "input": "Look at its input pipeline and at what it alone does between two steps: summaries, checkpoints, evaluation.",
    "communication": "Look at its links: bytes, bandwidth, and who else uses them.",
}


class JobAnswers:
    """The analyses of one step. ``sources``: its traces. ``other_steps``: other steps of the job, to estimate the clocks' drift.

    ``missing``: title of a process without a trace -> why. ``shared_clocks``: title of a process -> id of its machine's clock.
    """

    def __init__(
        self,
        sources: Sequence[ProcessTrace],
        title: str,
        trace_id: int,
        other_steps: Sequence[JobAnswers] = (),
        missing: dict[str, str] | None = None,
        shared_clocks: Mapping[str, str] | None = None,
    ) -> None:
        self.sources = list(sources)
        self.owners = Owners.of(self.sources)
        self.collectives: Collectives = find_collectives(self.sources)
        self.observations: list[Observation] = observations(self.sources, self.owners, self.collectives)
        self._missing = missing or {}
        pooled = [*self.observations, *(o for other in other_steps for o in other.observations_for(self.owners))]
        self._shared_clocks = [(shared_clocks or {}).get(title, "") for title in self.owners.titles]
        self.clocks: list[Clock] = estimate(pooled, len(self.owners.titles), shared=self._shared_clocks)
        aligned = align(self.sources, self.owners, self.clocks)
        self.merged: Merged = merge(aligned, self.owners)
        self.ranks: list[Rank] = [rank_of(each, i, self._is_known(i)) for i, each in enumerate(aligned)]
        self.waits = Waits.of(self._arrivals(), self.ranks)
        self.answers = _MergedAnswers(self, TraceContext(title=title), trace_id)
        self._source_answers = [
            Answers(each.trace.raw, TraceContext(title=each.title), trace=each.trace) for each in self.sources
        ]

    def observations_for(self, owners: Owners) -> list[Observation]:
        """Return this step's observations of the clocks, renumbered for another step's ``owners``.

        Observations of processes that the other step lacks are left out.
        """
        index = {title: i for i, title in enumerate(owners.titles)}
        renumbered = [index.get(title, -1) for title in self.owners.titles]
        kept = [o for o in self.observations if renumbered[o.a] >= 0 and renumbered[o.b] >= 0]
        return [replace(o, a=renumbered[o.a], b=renumbered[o.b]) for o in kept]

    def _arrivals(self) -> Int64:
        """Return [collectives, sources] the reference time when each process reached each collective; MISSING if it did not."""
        arrivals = self.collectives.start.copy()
        for i in range(len(self.sources)):
            present = arrivals[:, i] != MISSING
            arrivals[present, i] = self.clocks[i].to_reference(arrivals[present, i])
        return arrivals

    def _is_known(self, owner: int) -> bool:
        """Return whether the offset of the owner's clock from the reference clock is known."""
        return bool(np.isfinite(self.clocks[owner].sigma_ns))

    @property
    def _ids(self) -> list[str]:
        return [source.process for source in self.sources]

    @property
    def _clock_error_ns(self) -> float:
        """Twice the largest standard error of the clocks that are known. Processes with unknown clocks are not compared."""
        errors = [clock.sigma_ns for clock in self.clocks[: len(self.sources)]]
        if not len(self.collectives):
            return 0.0  # then steps are compared by their lengths, which need no common clock
        return 2 * max((e for e in errors if np.isfinite(e)), default=0.0)

    def answer(self, analysis: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an analysis of ``contract/analyses.py``, by the job's own method if there is one, else of the merged trace."""
        answer: Mapping[str, Any] = getattr(self if hasattr(self, analysis) else self.answers, analysis)(**arguments)
        return answer

    def timeline(self) -> Timeline:
        answer = self.answers.timeline()
        lanes = [{**lane, "group": self.merged.groups.get(lane["device"], "")} for lane in answer["lanes"]]
        return {**answer, "lanes": lanes, "findings": self.findings()}  # type: ignore[typeddict-item]

    def stragglers(self) -> list[Straggler]:
        return straggler.stragglers(self.ranks, self.waits, self._ids, self._clock_error_ns)

    def analysis(self, steps: Sequence[Sequence[Straggler]] = ()) -> JobAnalysis:
        """Return the clocks, collectives, stragglers and links of this step, and sentences about them.

        ``steps``: the stragglers of the job's traced steps, for the usual suspects; by default those of this step.
        """
        stragglers = self.stragglers()
        titles = dict(zip(self._ids, (source.title for source in self.sources)))
        links, tensors = self._links
        return {
            "clocks": self._clock_table(),
            "collectives": straggler.collective_rows(self.collectives, self.waits, self._ids, self._sizes),
            "stragglers": stragglers,
            "usual_suspects": straggler.usual_suspects(list(steps) or [stragglers], titles),
            "links": links,
            "tensors": tensors,
            "sentences": self._sentences(stragglers, links),
            "findings": self.findings(),
        }

    def verdict(self) -> Verdict:
        sentences = self._sentences(self.stragglers(), self._links[0]) or self.answers.verdict()["sentences"]
        length = float(self.merged.trace.duration_ns)
        return {"sentences": sentences, "step_ns": length, "whole_ns": length, "shares_of": "", "findings": self.findings()}

    def node(self, index: int) -> NodeDetail:
        """Return a node's details from the process that recorded it, with the merged trace's numbers and times."""
        try:
            source, source_node = self.merged.locate(index)
        except IndexError:
            raise UnknownError(f"The job's trace has no node {index}.") from None
        detail = self._source_answers[source].node(source_node)
        first = self.merged.first_node[source]
        shift = float(self.merged.trace.start[index]) - detail["start_ns"]
        moved: dict[str, Any] = dict(detail)
        for key in ("start_ns", "end_ns", "op_start_ns", "op_end_ns", "scheduled_ns"):
            moved[key] = None if moved[key] is None else moved[key] + shift
        for key in ("inputs", "consumers", "control_inputs", "related"):
            moved[key] = [_renumbered(ref, first) for ref in moved[key]]
        moved["node"], moved["device_title"] = index, f"{self.sources[source].title} {detail['device_title']}"
        return moved  # type: ignore[return-value]

    def _clock_table(self) -> list[ClockOffset]:
        names = [*self._ids, *self.owners.titles[len(self.sources) :]]
        return [
            {
                "process": names[i],
                "offset_ns": clock.offset_ns if self._is_known(i) else None,
                "drift_ppm": clock.drift * 1e6 if self._is_known(i) else None,
                "uncertainty_ns": 2 * clock.sigma_ns if self._is_known(i) else None,
                "matches": clock.matches,
            }
            for i, clock in enumerate(self.clocks)
        ]

    @cached_property
    def _links(self) -> tuple[list[Link], list[JobTensor]]:
        """Bytes and waiting time of each link and each tensor."""
        return links_and_tensors(self.sources, self._source_answers, self.merged)

    @cached_property
    def _sizes(self) -> list[float | None]:
        """The bytes of each collective's result, of the first MAX_COLLECTIVES; None: not known."""
        return result_bytes(self.sources, self.collectives, MAX_COLLECTIVES)

    def _sentences(self, stragglers: Sequence[Straggler], links: Sequence[Link]) -> list[Sentence]:
        step = max(float(self.merged.trace.duration_ns), 1.0)
        sentences = [self._straggler_sentence(s, step) for s in stragglers if s["cause"] in straggler.CAUSES]
        if links and links[0]["waited_ns"] > 0.1 * step * len(self.sources):
            sentences.append(slow_link(links[0], step * len(self.sources)))
        return sorted(sentences, key=lambda s: -s["share"])

    def _straggler_sentence(self, s: Straggler, step: float) -> Sentence:
        rank = self._ids.index(s["process"])
        late = np.flatnonzero((self.waits.last == rank) & (self.waits.spread > 0))
        worst = late[np.argsort(-self.waits.spread[late], kind="stable")][:50]
        nodes = [int(n) + self.merged.first_node[rank] for n in self.collectives.node[worst, rank]]
        cost = max(s["waited_for_ns"], s["slower_by_ns"])
        return {
            "code": "straggler",
            "text": s["text"],
            "advice": ADVICE[s["cause"]],
            "share": min(cost / step, 1.0),
            "numbers": {"waited_for_ns": s["waited_for_ns"], "slower_by_ns": s["slower_by_ns"]},
            "evidence": {"nodes": nodes, "tab": "ranks"},
        }

    def findings(self) -> list[Finding]:
        """Return the findings about missing processes, about the clocks, and about the processes' traces."""
        clocks = clock_findings(self.owners.titles, self.clocks, self._shared_clocks, self.collectives)
        return [*missing_processes(self._missing), *clocks, *process_findings(self.sources)]


class _MergedAnswers(Answers):
    """The analyses of the merged trace, with the job's findings instead of those of a single trace."""

    def __init__(self, job: JobAnswers, context: TraceContext, trace_id: int) -> None:
        super().__init__(None, context, trace=job.merged.trace, trace_id=trace_id)
        self._job = job

    def findings(self) -> list[Finding]:
        return self._job.findings()

    def critical_path(self, with_slack: bool = False, limit: int = MAX_STEPS) -> CriticalPath:
        """Return the path without slack: too little is known about nodes of other processes."""
        answer = super().critical_path(limit=limit)
        has_finding = any(f["code"] == NO_GRAPHS["code"] for f in answer["findings"])
        return {**answer, "findings": [*answer["findings"], *(() if has_finding else [NO_GRAPHS])]}


def _renumbered(ref: NodeRef, first: int) -> NodeRef:
    return {**ref, "node": ref["node"] + first if ref["node"] >= 0 else ref["node"]}
