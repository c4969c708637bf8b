"""Converts the watch's records to the page's messages. Pure: ``offset`` converts perf_counter seconds to epoch seconds."""

from __future__ import annotations

from typing import NamedTuple

from tftracer.contract import stalls as contract
from tftracer.slow.answer import texts
from tftracer.slow.answer.code_lines import code_lines, stack_tree
from tftracer.slow.answer.evidence import evidence
from tftracer.slow.cause.blamed_code import is_in_phase
from tftracer.slow.watch_results import GapProfile, GcPause, HostChange, HostSample, Period, Stall
from tftracer.trace.units import duration, percent

#: Minimum seconds of a garbage collection that has a mark in the history.
MIN_GC_S = 0.005
#: Minimum shares of a second for a mark: in which the training thread had no CPU; in which processes waited for memory or a
#: disk; and of the CPUs' time that the hypervisor took.
STARVED_SHARE, PRESSURE_SHARE, STEAL_SHARE = 0.2, 0.3, 0.1
FAULTS_PER_S = 200  # minimum number of pages that were read from a disk in a second, for a mark
#: The first words of the mark for a second in which the training's thread waited for a CPU.
STARVED = "The training's thread had no CPU"
#: A part of the names of hooks and callbacks that write checkpoints.
CHECKPOINT = "Checkpoint"


class SlowMark(NamedTuple):
    """A mark in a run's history, without its step, which depends on the run that is shown."""

    kind: contract.MarkKind
    at: float
    duration_s: float | None
    text: str
    share: float | None = None  # share of the time in which the host delayed the training; None: not known

    @property
    def sentence(self) -> str:
        return self.text if self.share is None else f"{self.text} for {percent(self.share)} of the time"

    @property
    def end(self) -> float:
        return self.at + (self.duration_s or 0.0)


def where(inside: bool) -> contract.Place:
    return "inside" if inside else "between"


def stall_message(stall_id: int, stall: Stall, offset: float) -> contract.Stall:
    """Return the page's message about a slow step.

    When the page requests it, answers.py fills in the trace, the period and the step's text.
    """
    return {
        "id": stall_id,
        "run_id": stall.run.run_id,
        "step": None if stall.of_other_signature else stall.step,
        "call": stall.call,
        "step_text": "",
        "where": where(stall.inside),
        "started_at": stall.start_ns / 1e9 + offset,
        "duration_s": (stall.end_ns - stall.start_ns) / 1e9,
        "expected_s": stall.expected_s,
        "cause": stall.cause.kind,
        "without_cpu": texts.without_cpu(stall),
        "place": texts.place_of(stall.cause),
        "text": texts.cause_text(stall),
        "evidence": evidence(stall),
        "uncertainty": stall.doubt,
        "lines": code_lines(stall.stacks),
        "other_lines": code_lines(stall.other_stacks),
        "parts": [
            {"kind": part.kind, "duration_s": part.seconds, "usual_s": part.usual_s, "what": part.what} for part in stall.parts
        ],
        "others": [
            {"cause": other.cause.kind, "place": texts.place_of(other.cause), "duration_s": other.seconds}
            for other in stall.others
        ],
        "samples": sum(stack.samples for stack in stall.stacks),
        "trace_id": None,
        "every": None,
    }


def stall_stacks(stall: Stall) -> contract.StallStacks:
    return stack_tree((*stall.stacks, *stall.other_stacks))


def period_message(period: Period) -> contract.Period:
    return {
        "run_id": period.run.run_id,
        "every": period.steps,
        "where": where(period.inside),
        "tolerance": period.tolerance,
        "times": period.occurrences,
        "duration_s": period.median_s,
        "cause": period.cause.kind,
        "place": texts.place_of(period.cause),
        "first_step": period.first_step,
        "last_step": period.last_step,
        "last_call": period.last_call,
        "next_step": period.next_step,
        "text": texts.period_text(period),
    }


def gap_message(profile: GapProfile, offset: float) -> contract.GapProfile:
    passed = profile.inside_s + profile.between_s
    sampled_s = passed if profile.whole_turns else profile.between_s
    lines = code_lines(profile.stacks)
    python_stacks = [stack for stack in profile.stacks if not is_in_phase(stack)]
    where = "from step to step" if profile.whole_turns else "between the steps"
    return {
        "run_id": profile.run.run_id,
        "state": "ready",
        "sampled_at": profile.start_ns / 1e9 + offset,
        "duration_s": passed,
        "steps": profile.steps,
        "samples": profile.samples,
        "late": 0,
        "share": profile.between_s / passed if passed > 0 else None,
        "gc_share": None if profile.gc_s is None or sampled_s <= 0 else min(profile.gc_s / sampled_s, 1.0),
        "lines": lines,
        "python_lines": code_lines(python_stacks),
        "other_lines": [],
        "whole_turns": profile.whole_turns,
        "text": f"Of the usual time {where}: {texts.lines_text(lines)}." if lines else NO_LINES,
    }


NO_LINES = "No line is known for the usual time between the steps: no sample of the stacks was surely taken in it."


def no_gaps(run_id: int, state: contract.GapState, why: str) -> contract.GapProfile:
    """Return the message of a run whose gaps were not sampled."""
    return {
        "run_id": run_id,
        "state": state,
        "sampled_at": None,
        "duration_s": None,
        "steps": 0,
        "samples": 0,
        "late": 0,
        "share": None,
        "gc_share": None,
        "lines": [],
        "python_lines": [],
        "other_lines": [],
        "whole_turns": False,
        "text": why,
    }


def gc_mark(pause: GcPause, offset: float) -> SlowMark | None:
    seconds = (pause.end_ns - pause.start_ns) / 1e9
    if seconds < MIN_GC_S:
        return None
    text = f"Garbage collection of generation {pause.generation}, {duration(seconds * 1e9)}"
    return SlowMark("gc", pause.start_ns / 1e9 + offset, seconds, text)


def checkpoint_mark(stall: contract.Stall) -> SlowMark | None:
    """Return the mark of a slow step that saved or restored a checkpoint, judging by its cause or the name of a hook or callback.

    The name may be only in ``place``: the list of lines may have lines of the script that the hook called.
    """
    owners = [stall["place"].partition(" (")[0], *(line["owner"] for line in stall["lines"])]
    owner = CHECKPOINT if stall["cause"] == "checkpoint" else next((owner for owner in owners if CHECKPOINT in owner), "")
    if stall["cause"] not in ("checkpoint", "hook", "callback", "disk", "wait") or not owner:
        return None
    return SlowMark("checkpoint", stall["started_at"], stall["duration_s"], f"{owner}, {duration(stall['duration_s'] * 1e9)}")


def host_mark(sample: HostSample, offset: float) -> SlowMark | None:
    """Return the mark of a second in which the machine delayed the training; None for other seconds."""
    text, share = host_trouble(sample.change)
    if not text:
        return None
    return SlowMark("host", sample.at_ns / 1e9 + offset - sample.change.seconds, sample.change.seconds, text, share)


def host_trouble(change: HostChange) -> tuple[str, float | None]:
    """Return how the machine delayed the training, in words, or "", and for which share of the time; None if not known."""
    whole = max(change.seconds, 1e-9)
    for seconds, min_share, words in (
        (change.run_queue_s, STARVED_SHARE, STARVED),
        (change.memory_pressure_s, PRESSURE_SHARE, "Processes waited for memory"),
        (change.io_pressure_s, PRESSURE_SHARE, "Processes waited for a disk"),
    ):
        if seconds is not None and seconds >= min_share * whole:
            return words, min(seconds / whole, 1.0)
    if change.steal_s is not None and change.cpus and change.steal_s >= STEAL_SHARE * whole * change.cpus:
        return f"The hypervisor took {percent(change.steal_s / whole / change.cpus)} of the CPUs' time", None
    if change.major_faults is not None and change.major_faults >= FAULTS_PER_S * whole:
        return f"{change.major_faults:,} memory pages had to come from a disk", None
    return "", None
