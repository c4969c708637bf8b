"""Slow steps whose thread had no CPU: on a busy machine they are many, and say the same. They are listed apart then. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tftracer.contract.stalls import NoCpu, Stall
from tftracer.trace.units import duration

#: From so many on they are listed apart.
MANY = 5


def no_cpu(stalls: Sequence[Stall]) -> NoCpu | None:
    """Those among a list, together; None where they are few."""
    seconds = [stall["duration_s"] for stall in stalls if stall["no_cpu"]]
    if len(seconds) < MANY:
        return None
    whole, longest = sum(seconds), max(seconds)
    unknown = sum(stall["no_cpu"] and stall["cause"] == "unknown" for stall in stalls)
    text = f"No CPU: {len(seconds):,} times, {duration(whole * 1e9)} in all, the longest {duration(longest * 1e9)}"
    if unknown:
        text += f". {unknown:,} of them were too short to be sure: their thread had no CPU for much of that second"
    return {"times": len(seconds), "duration_s": whole, "longest_s": longest, "text": text}
