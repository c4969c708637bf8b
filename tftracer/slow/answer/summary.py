"""Summarises a run's slow steps and the time between its steps for ``tftracer FILE --summary``."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tftracer.contract.session import Run
from tftracer.contract.stalls import GapProfile, SlowGroup, Stall, StallList
from tftracer.slow.answer.texts import lines_text, ordinal, trace_text
from tftracer.slow.record.kept_slow_steps import by_cost
from tftracer.trace.summary import WIDTH, shortened
from tftracer.trace.units import counted, duration, percent

#: Maximum number of the longest slow steps in the text, and in the JSON.
MAX_STALLS, MAX_JSON_STALLS = 5, 100
#: Maximum number of groups in the text.
MAX_GROUPS = 8
MIN_GC = 0.1  # minimal share of garbage collections in the time between steps, for them to be named


def slow_steps(run: Run, slow: StallList, gaps: GapProfile) -> dict[str, Any]:
    """Return the number of a run's slow steps, their groups, periods, the longest slow steps, and the lines between steps, for
    JSON.

    ``slow``: the slow steps of all runs.
    """
    stalls = [stall for stall in slow["stalls"] if stall["run_id"] == run["id"]]
    return {
        "count": run["slow_steps"]["count"],
        "groups": [group for group in slow["groups"] if group["run_id"] == run["id"]],
        "periods": by_cost(period for period in slow["periods"] if period["run_id"] == run["id"]),
        "longest": sorted(stalls, key=lambda stall: (-stall["duration_s"], stall["id"]))[:MAX_JSON_STALLS],
        "between_steps": gaps if gaps["state"] == "ready" else None,
    }


def render(run: dict[str, Any], recomputed: Mapping[int, str]) -> str:
    """Return the text of a run with its ``slow_steps``; "" if it has none. ``recomputed``: trace -> its current headline."""
    slow = run["slow_steps"]
    if not slow["count"] and not slow["between_steps"]:
        return ""
    title = shortened(run["title"], WIDTH - 24)
    head = f"Slow steps of {title}: {slow['count']:,}" if slow["count"] else f"Between the steps of {title}"
    if sum(group["times"] for group in slow["groups"]) > slow["count"]:
        head += " (those with two causes are in two groups)"
    headlines = {trace["id"]: (trace["step"], recomputed.get(trace["id"], trace["headline"])) for trace in run["traces"]}
    return "\n".join([head, *_lines(slow, headlines)])


def _lines(slow: dict[str, Any], headlines: Mapping[int, tuple[int | None, str]]) -> Iterator[str]:
    for group in slow["groups"][:MAX_GROUPS]:
        yield _filled(_group(group))
        step, headline = headlines.get(group["trace_id"], (None, ""))
        if step and headline:
            yield _filled(trace_text(group["trace_id"], step, headline), "    ")
    if rest := slow["groups"][MAX_GROUPS:]:
        times, lost = _sums(rest)
        further, slow_ones = counted(len(rest), "further group"), counted(times, "slow step")
        yield _filled(f"{further}: {slow_ones}, {lost} longer than usual in all{_without_cause(rest)}.")
    has_each_listed = not rest and all(group["times"] == 1 for group in slow["groups"])
    longest = [] if has_each_listed else slow["longest"][:MAX_STALLS]
    if longest:
        yield "  The longest of all these:"
    for stall in longest:
        yield _filled(_stall(stall), "    ")
    gaps = slow["between_steps"]
    if gaps:
        sampled = f"the {duration((gaps['duration_s'] or 0.0) * 1e9)} that were sampled last"
        share = f"{percent(gaps['share'])} of {sampled}. " if gaps["share"] is not None else ""
        lines = lines_text(gaps["lines"], 5)
        whole = "the whole time from step to step" if gaps["whole_turns"] else "what made no step slow"
        usual = f"Of {whole}, by {counted(gaps['samples'], 'sample')}: {lines}"
        gc_share = gaps["gc_share"] or 0.0
        collects = f" Garbage collections took {percent(gc_share)} of that time, by clock." if gc_share >= MIN_GC else ""
        yield _filled(f"Between steps: {share}{f'{usual}.' if lines else gaps['text']}{collects}")


def _without_cause(rest: list[SlowGroup]) -> str:
    """Return how many slow steps of these groups had no CPU, and how many have no known cause; "" if none."""
    parts = []
    for cause, words in (("machine", "had no CPU"), ("unknown", "are of unknown cause")):
        times, lost = _sums(group for group in rest if group["cause"] == cause)
        parts += [f"{times:,} {words} ({lost})"] if times else []
    return f"; {' and '.join(parts)}" if parts else ""


def _sums(groups: Iterable[SlowGroup]) -> tuple[int, str]:
    """Return the number of slow steps in these groups, and the time that they took longer than usual, in words."""
    sums = [(group["times"], group["lost_s"]) for group in groups]
    return sum(times for times, _ in sums), duration(sum(lost for _, lost in sums) * 1e9)


def _group(group: SlowGroup) -> str:
    times = counted(group["times"], "slow step")
    lost = f"{duration(group['lost_s'] * 1e9)} longer than usual in all, the longest {duration(group['longest_s'] * 1e9)}"
    last = f", last at {group['last_text']}" if group["last_text"] else ""
    active = [period for period in group["periods"] if period["next_step"] is not None]
    ended_periods = [period for period in group["periods"] if active and period["next_step"] is None]
    last_of = {period["every"]: period["last_text"] for period in sorted(ended_periods, key=lambda period: period["last_step"])}
    until = "".join(f" Every {ordinal(every)} step until {text}." for every, text in last_of.items())
    ended = ""
    if group["ended"] and group["times"] > 1:
        ended = " None was found in this run since."
    if ended and group["periods"]:
        last_period = max(group["periods"], key=lambda period: period["last_step"])["last_text"]
        ended = " It has ended." if last_period == group["last_text"] else f" The period ended after {last_period}."
    at_steps = sum(period["times"] for period in active)
    others = f" With those of other causes, {at_steps:,} came at these steps." if at_steps > group["times"] else ""
    return f"{group['text']}. {times}, {lost}{last}.{others}{ended}{until}"


def _stall(stall: Stall) -> str:
    usual = f", usually {duration(stall['expected_s'] * 1e9)}" if stall["expected_s"] is not None else ""
    place = "inside" if stall["where"] == "inside" else "before it"
    doubt = f". {stall['uncertainty']}" if stall["cause"] == "unknown" and stall["uncertainty"] else ""
    trace = f" See trace {stall['trace_id']}." if doubt and stall["trace_id"] is not None else ""
    return f"{stall['step_text']}, {place}: {duration(stall['duration_s'] * 1e9)}{usual}. {stall['text']}{doubt}{trace}"


def _filled(text: str, indent: str = "  ") -> str:
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")
