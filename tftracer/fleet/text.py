"""Formats a fleet's answers for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tftracer.display.escaped_lines import joined, shown_plainly
from tftracer.fleet.ask import Fleet
from tftracer.trace.summary import table
from tftracer.trace.units import counted, duration

_WIDTH = 80


def as_text(fleet: Fleet) -> str:
    return joined(_lines(fleet))


def _lines(fleet: Fleet) -> Iterator[str]:
    yield f"{counted(fleet.partitions, 'partition')} of {counted(fleet.jobs, 'job')}"
    yield from (f"Left out: {why}" for why in fleet.left_out)
    yield ""
    yield "Slowest ranks, by their own time in traced steps (without exposed communication):"
    yield from _table(
        ("job", "rank", "own time", "of the median rank's", "traced steps", "mean step"),
        [
            (row["job"], f"{row['rank']}", duration(row["own_ns"]), f"{row['ratio']:.0%}", f"{row['traced_steps']:,}",
             _time(row["step_ns"]))
            for row in fleet.ranks
        ],
        "no step was traced on several ranks",
    )  # fmt: skip
    yield ""
    yield "Ops, by total time:"
    yield from _table(
        ("op", "executions", "total", "p50", "p99", "longest"),
        [
            (
                row["op"],
                f"{row['executions']:,}",
                *(duration(row[name]) for name in ("total_ns", "p50_ns", "p99_ns", "longest_ns")),
            )
            for row in fleet.ops
        ],
        "no trace",
    )
    yield ""
    yield "Collectives, by the time from the first rank's arrival to the last rank's arrival:"
    yield from _table(
        ("collective", "job", "spread", "last most often", "times"),
        [
            (
                row["name"],
                row["job"],
                duration(row["spread_ns"]),
                f"rank {row['last_rank']}",
                f"{row['times_last']} of {row['times']}",
            )
            for row in fleet.collectives
        ],
        "no collective was traced on several ranks",
    )
    yield from _clocks(fleet) if fleet.collectives else ()
    yield ""
    yield "Layers that grew, from the first half of the traced steps to the second:"
    yield from _table(
        ("layer", "job", "first half", "second half"),
        [(row["layer"], row["job"], duration(row["first_ns"]), duration(row["second_ns"])) for row in fleet.layers],
        "none",
    )


def _time(ns: float | None) -> str:
    return "-" if ns is None else duration(ns)


def _clocks(fleet: Fleet) -> Iterator[str]:
    unknown = [row["job"] for row in fleet.clocks if row["ranks"] > row["known"] + 1]
    errors = [row["error_ns"] for row in fleet.clocks if row["error_ns"] is not None]
    if errors:
        yield f"  Clocks agree within {duration(max(errors))}."
    if unknown:
        listed = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        yield f"  How well the ranks' clocks agree is not known for {listed}: the arrival times there are uncertain."


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], empty: str) -> Iterator[str]:
    if not rows:
        yield f"  {empty}"
        return
    for line in table([list(heads), *([_cell(cell) for cell in row] for row in rows)]).split("\n"):
        yield f"  {line}"


def _cell(text: str) -> str:
    return shown_plainly(text)[:_WIDTH]
