"""From raw bytes to lanes, beside protobuf's own C parse of the same bytes, from 10^3 nodes to TensorFlow's cap of 2^20.

Each size runs in a process of its own, in which the two take turns; the medians and the first turns are printed, since a
server decodes a trace once. ``peak/raw`` is the largest resident memory over what the process had before, raw bytes included,
as a multiple of them. ``beside``: the speed that a Python loop keeps while another thread decodes and lays out, against its
speed alone; the same loop while another *process* does shows what the machine itself costs it.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from repeated_trace import trace_of

from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.run_metadata import decode_run_metadata
from tftracer.trace.timeline_lanes import lay_out

OUT = Path(__file__).parent / "out"
DATA = Path(__file__).parents[1] / "tests" / "data"
TRACES = [
    OUT / "loop_1000.pb",
    DATA / "dense500_tf2.15_cpu.pb",
    OUT / "loop_10000.pb",
    trace_of(96_108),
    OUT / "loop_100000.pb",
    OUT / "loop_cut.pb",
]
TURNS = 5


def seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def parse(raw: bytes) -> None:
    message_class("RunMetadata")().ParseFromString(raw)


def lanes(raw: bytes) -> None:
    lay_out(decode_run_metadata(raw))


def times(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    parse(b"")
    decode_run_metadata(b"")
    rows = []
    for _ in range(TURNS):
        c = seconds(lambda: parse(raw))
        began = time.perf_counter()
        trace = decode_run_metadata(raw)
        decoded = time.perf_counter()
        lay_out(trace)
        rows.append((c, decoded - began, time.perf_counter() - decoded))
        nodes = trace.n
        del trace
    medians = [statistics.median(column) for column in zip(*rows)]
    return {"nodes": nodes, "bytes": len(raw), "first": rows[0], "median": medians}


def peak(path: Path) -> dict[str, Any]:
    """Watched from a thread: the high-water mark of the whole process would count what imports once took."""
    process, highest, done = psutil.Process(), [0], threading.Event()
    lanes(DATA.joinpath("ps_worker0_tf2.21_cpu.pb").read_bytes())
    before = process.memory_info().rss

    def watch() -> None:
        while not done.wait(0.001):
            highest[0] = max(highest[0], process.memory_info().rss)

    watcher = threading.Thread(target=watch)
    watcher.start()
    raw = path.read_bytes()
    lanes(raw)
    done.set()
    watcher.join()
    return {"peak": (highest[0] - before) / len(raw)}


def spin(stop: Callable[[], bool]) -> float:
    """Turns a second of a loop of plain Python, until told to stop."""
    turns, began = 0, time.perf_counter()
    while not stop():
        for _ in range(1000):
            turns += 1
    return turns / (time.perf_counter() - began)


def alone() -> float:
    until = time.perf_counter() + 1
    return spin(lambda: time.perf_counter() > until)


def gil(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    lanes(raw)
    beside, apart, took = [], [], []
    for _ in range(3):
        usual = alone()
        worker = threading.Thread(target=lambda: took.append(seconds(lambda: lanes(raw))))
        worker.start()
        beside.append(spin(lambda: not worker.is_alive()) / usual)  # noqa: B023
        process = multiprocessing.get_context("fork").Process(target=lanes, args=(raw,))
        usual = alone()
        process.start()
        apart.append(spin(lambda: not process.is_alive()) / usual)  # noqa: B023
    return {"beside": statistics.median(beside), "apart": statistics.median(apart), "took": statistics.median(took)}


def measured(what: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, what, str(path)]
    result: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return result


def main() -> None:
    if len(sys.argv) == 3:
        task = {"times": times, "peak": peak, "gil": gil}[sys.argv[1]]
        print(json.dumps(task(Path(sys.argv[2]))))
        return
    print("milliseconds                      C parse    decode     lanes   ratio   first C   first ratio  peak/raw")
    for path in TRACES:
        if not path.exists():
            print(f"{path.name}: not there; make_traces.py makes it")
            continue
        t = measured("times", path)
        c, decode, layout = (1e3 * value for value in t["median"])
        first = (t["first"][1] + t["first"][2]) / t["first"][0]
        memory = measured("peak", path)["peak"] if t["bytes"] > 10e6 else float("nan")
        print(
            f"{path.name:22} {t['nodes']:9,} {c:9.2f} {decode:9.2f} {layout:9.2f} {(decode + layout) / c:7.2f}"
            f" {1e3 * t['first'][0]:9.2f} {first:13.2f} {memory:9.2f}"
        )
    result = measured("gil", TRACES[-1])
    print(
        f"A Python loop beside the largest keeps {result['beside']:.0%} of its speed ({result['apart']:.0%} beside another "
        f"process that does the same); the decoding then takes {result['took']:.1f} s."
    )


if __name__ == "__main__":
    main()
