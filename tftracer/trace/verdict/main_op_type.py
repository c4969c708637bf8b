"""The op type with the most op time, or the family of types (convolutions, products), in words."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tftracer.trace.analyses.op_kinds import family
from tftracer.trace.analyses.ops import NO_OP
from tftracer.trace.arrays.intervals import is_in
from tftracer.trace.arrays.types import Bool
from tftracer.trace.units import counted, percent
from tftracer.trace.verdict.op_time import NOTABLE_DIFFERENCE, OpTime
from tftracer.trace.verdict.step import Step

MAIN_SHARE = 0.5  # minimal share of the op time, for a type or family to have most of it
MIN_LEAST_SHARE = 0.4  # minimal share by the shortest and median times of each op in the run's traces, and without delays
MIN_SHARE = 0.05  # types with a smaller share of the op time are not listed
LISTED_TYPES = 3
HELD_UP_PART = 0.5  # a type was held up if less than this part of its time is left without delays of single ops


class MainOpType(NamedTuple):
    share: float  # of the total op time, as in the table
    leads: bool  # whether it, or its family, has most of the op time, also without delays of single ops
    text: str
    is_summary: bool = False  # whether ops that write summaries lead


def main_op_type(step: Step) -> MainOpType | None:
    """Return the op type with the most op time; None if no op takes any."""
    work = step.work
    # Stages of tf.data and calls with recorded ops are nested, and mostly wait.
    outer = step.stages.members | (step.functions if step.shows_xla else step.functions_with_ops)
    is_counted = ~outer[work.node]
    total = float(work.duration[is_counted].sum())
    if not total:
        return None
    types = len(step.trace.ops)
    shares = np.bincount(work.op, np.where(is_counted, work.duration, 0), minlength=types) / total
    time = OpTime.of(step)
    spent = np.bincount(time.work.op, time.ns_without_outliers, minlength=types)  # [types] ns without delays of single ops
    undelayed = int(np.argmax(spent))
    held_up = spent < HELD_UP_PART * np.bincount(time.work.op, time.work.self_ns, minlength=types)
    held_up[undelayed] = False
    held_up &= shares > 0
    left_out = _left_out([(step.trace.ops[code], float(shares[code])) for code in np.flatnonzero(held_up).tolist()])
    shares[held_up] = 0.0
    ranked = [code for code in np.argsort(-shares, kind="stable")[:LISTED_TYPES].tolist() if shares[code] >= MIN_SHARE]
    largest = int(np.argmax(shares))
    share, name = float(shares[largest]), step.trace.ops[largest] or NO_OP
    is_largest: Bool = time.work.op == largest
    has_most = bool(spent[undelayed] >= MAIN_SHARE * float(spent.sum()) > 0)
    has_most = has_most and time.least_share(time.work.op == undelayed) >= MIN_LEAST_SHARE
    if has_most and (undelayed != largest or share < MAIN_SHARE):
        ops = f"{counted(int((time.work.op == undelayed).sum()), 'op')} of type {step.trace.ops[undelayed] or NO_OP}"
        return MainOpType(share, True, f"Without what held up single ops, most op time goes into {ops}.")
    share_text = f"{percent(share)} of the total op time"
    executions = int((is_counted & (work.op == largest)).sum())
    if has_most and executions > 1:
        return MainOpType(
            share,
            True,
            f"Most op time goes into {executions:,} ops of type {name}, with {share_text}"
            f"{_without_delays(share, float(spent[largest] / spent.sum()))}.{time.scope(is_largest)}",
            "Summary" in name,
        )
    same_family = [code for code in ranked if family(step.trace.ops[code]) == family(name)]
    family_share = float(shares[same_family].sum())
    undelayed_family_share = float(spent[same_family].sum()) / max(float(spent.sum()), 1.0)
    least_share = time.least_share(is_in(time.work.op, same_family))
    if family(name) and len(same_family) > 1 and min(family_share, undelayed_family_share, least_share) >= MAIN_SHARE:
        listed = ", ".join(f"{step.trace.ops[code]} {percent(float(shares[code]))}" for code in same_family)
        return MainOpType(
            share,
            True,
            f"Most op time goes into {family(name)}, with {percent(family_share)} of the total"
            f"{_without_delays(family_share, undelayed_family_share)} ({listed}).",
        )
    others = [f"{step.trace.ops[code] or NO_OP} ({percent(float(shares[code]))})" for code in ranked if code != largest]
    if others:
        first = [f"{name} (with {share_text})", *others[:-1]]
        return MainOpType(share, False, f"The largest op types{left_out} are {', '.join(first)} and {others[-1]}.")
    return MainOpType(share, False, f"The largest op type{left_out} is {name}, with {share_text}.{time.scope(is_largest)}")


def _left_out(held_up: list[tuple[str, float]]) -> str:
    """Name the types with the largest shares among those that were held up: ", without BiasAddGrad (19%), which was held up,"."""
    ranked = [each for each in sorted(held_up, key=lambda each: -each[1]) if each[1] >= MIN_SHARE]
    named = [f"{name or NO_OP} ({percent(share)})" for name, share in ranked[:LISTED_TYPES]]
    if len(ranked) > LISTED_TYPES:
        named.append(counted(len(ranked) - LISTED_TYPES, "more type"))
    listed = " and ".join(named)
    return f", without {listed}, which {'was' if len(ranked) == 1 else 'were'} held up," if ranked else ""


def _without_delays(share: float, undelayed: float) -> str:
    return f", {percent(undelayed)} without what held up single ops" if share - undelayed >= NOTABLE_DIFFERENCE else ""
