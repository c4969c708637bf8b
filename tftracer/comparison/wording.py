"""Words for the differences between two groups of sessions, for terminals and notebooks."""

from __future__ import annotations

from tftracer.comparison.odd_ops import FLOOR_NS, FLOOR_SHARE
from tftracer.comparison.shift import ASSUMED_SPREAD, Shift
from tftracer.trace.units import byte_size, counted, duration

_TITLES = {
    "step": "step time (p25)",
    "p99": "step time (p99)",
    "gap": "between steps",
    "memory": "memory peak",
    "bytes": "bytes received",
}
_IN_BYTES = ("memory", "bytes")
TOO_FEW = "too few sessions to tell"
#: How much the times of an op must differ at least.
FLOORS = f"more than {duration(FLOOR_NS)} and {FLOOR_SHARE:.0%}"
OPS_NOT_COMPARED = "Ops are not compared: a side has no trace of this run."
ONE_SESSION = (
    "With one session a side, neither the scatter between sessions nor the intervals are known; tftracer compare assumes "
    f"{ASSUMED_SPREAD:.0%} (standard deviation). Record several sessions of each version, alternately (before, after, ...)."
)

NOT_IN_TURNS = (
    "The sessions were not recorded in turns: on average, {:.1f} sessions of the same side were recorded one after the other. "
    "Whatever changed on the machine meanwhile looks like a difference of the sides, so intervals are wider. To record in turns: "
    "tftracer run --repeat 8 -- before.py -- after.py"
)


def title(metric: str) -> str:
    return _TITLES.get(metric, metric)


def value(metric: str, number: float) -> str:
    return byte_size(number) if metric in _IN_BYTES else duration(number)


def interval(shift: Shift) -> str:
    return "not known" if shift.basis == "assumed" else f"{shift.low:+.1%} to {shift.high:+.1%}"


def outcome(shift: Shift) -> str:
    if shift.basis == "assumed":
        return TOO_FEW
    more, less = ("more", "less") if shift.metric in _IN_BYTES else ("longer", "shorter")
    if shift.low <= 0 <= shift.high:
        return "no difference beyond chance"
    direction = more if shift.low > 0 else less
    return direction if shift.differs else f"perhaps {direction}: the 95% interval excludes 0, the 99% interval does not"


def left_out(unreadable: int) -> str:
    """Return a sentence about traces that cannot be read, with a space before it; "" if there are none."""
    verb = "is" if unreadable == 1 else "are"
    return f" {counted(unreadable, 'trace')} cannot be read and {verb} left out." if unreadable else ""
