"""``tftracer roof``: measures this machine's matrix products and memory, and can save the results for the roofline."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tftracer.subcommand_parser import Parser

if TYPE_CHECKING:
    from tftracer.contract.machine import MeasuredDevice, MeasuredRoof


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds <= 60:
        raise argparse.ArgumentTypeError("a number of seconds, more than 0 and at most 60")
    return seconds


SUMMARY = "measures this machine for the roofline"


def parser() -> Parser:
    syntax = Parser(
        "tftracer roof",
        description="Measures this machine: matrix products for each dtype, with NumPy and, if installed, with TensorFlow, "
        "and the bandwidth of memory. Takes some seconds of full load; refuses while a training is recorded on this machine.",
    )
    syntax.add_argument(
        "--save", action="store_true", help="save the results: the Roofline tab of traces from this machine shows them"
    )
    syntax.add_argument(
        "--seconds", type=_seconds, default=1.0, metavar="S", help="duration of each measurement in seconds (default: 1)"
    )
    syntax.add_argument("--json", action="store_true", help="print JSON, in FLOPs and bytes a second")
    return syntax


def main(arguments: Sequence[str], say: Callable[[str], None]) -> int:
    from tftracer.roof.measure import measure, refuse_during_training
    from tftracer.storage.roof_file import save_roof

    options = parser().parse_args(arguments)
    refuse_during_training()
    roof = measure(options.seconds, _tell)
    say(json.dumps(roof, indent=1) if options.json else as_text(roof))
    if options.save:
        _tell(f"Saved as {save_roof(roof)}.")
    return 0


def _tell(text: str) -> None:
    """Write to stderr, because a program may read the answer on stdout."""
    sys.stderr.write(f"{text}\n")


def as_text(roof: MeasuredRoof) -> str:
    """Return one table per device, and below them why the measured rates may be too low (``doubt``), if there is a reason."""
    doubt = [f"\n{roof['doubt']}"] if roof["doubt"] else []
    return "\n".join([*(line for device in roof["devices"] for line in _lines(device)), *doubt])


def _lines(device: MeasuredDevice) -> list[str]:
    rates = [(rate["dtype"], rate["flops_per_s"], "GFLOP/s", rate["by"]) for rate in device["rates"]]
    if device["bytes_per_s"] is not None:
        rates.append(("memory", device["bytes_per_s"], "GB/s", "read and written by a copy"))
    return [
        f"{device['kind']}: {device['title']}",
        *(f"  {name:<9} {rate / 1e9:>12,.1f} {unit:<8} {by}" for name, rate, unit, by in rates),
    ]
