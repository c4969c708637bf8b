"""Formats times, sizes and shares for sentences and the summary: three significant digits, in the units of the page."""

from __future__ import annotations


def duration(ns: float) -> str:
    """Format a time in nanoseconds: ``12.3 µs``, ``4.56 ms``, ``1.23 s``."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= 0.9995 * size:
            return f"{three_digits(ns / size)} {unit}"
    return f"{ns:.0f} ns"


def about_duration(seconds: float) -> str:
    """Return a time that was estimated from samples, with two digits: "about 360 ms"."""
    return f"about {duration(float(f'{seconds:.2g}') * 1e9)}"


def byte_size(count: float) -> str:
    """Format a size in bytes: ``12.3 kB``, ``4.56 MB``."""
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= 0.9995 * size:
            return f"{three_digits(count / size)} {unit}"
    return f"{count:.0f} B"


def percent(share: float) -> str:
    return f"{share * 100:.0f}%"


def counted(number: int, one: str, several: str = "") -> str:
    """Format a number of things: ``1 trace``, ``2,000 traces``."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def three_digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"
