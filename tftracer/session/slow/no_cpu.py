"""Slow steps whose thread had no CPU: on a busy machine they are many, and say the same. They are listed apart then. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from tftracer.contract.stalls import NoCpu, Stall
from tftracer.trace.units import duration

#: From so many on they are listed apart.
MANY = 5


def had_no_cpu(stall: Stall) -> bool:
    return stall["cause"] == "machine"


def no_cpu(stalls: Iterable[Stall]) -> NoCpu | None:
    """Those among a list, together; None where they are few."""
    seconds = [stall["duration_s"] for stall in stalls if had_no_cpu(stall)]
    if len(seconds) < MANY:
        return None
    whole, longest = sum(seconds), max(seconds)
    text = (
        f"No CPU: {len(seconds):,} times, {duration(whole * 1e9)} in all, the longest {duration(longest * 1e9)}. Other processes "
        "or threads had the CPUs"
    )
    return {"times": len(seconds), "duration_s": whole, "longest_s": longest, "text": text}
