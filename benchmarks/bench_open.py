"""From a file of 2^20 nodes to the timeline as an answer over HTTP: time and memory of a fresh viewer, beside the C parse.

The timeline is asked for as soon as the viewer says its URL; the viewer finds out what is in the trace meanwhile. ``answered``:
from the viewer's start on, less what a viewer of a tiny file takes (Python and imports). ``peak``: the largest resident memory
until all is done. ``python benchmarks/bench_open.py [FILE...]``; no TensorFlow.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

import psutil
from bench_page import viewer
from repeated_trace import trace_of

OUT = Path(__file__).parent / "out"
TINY = Path(__file__).parents[1] / "tests/data/conv_costgraph_tf2.21_cpu.pb"
TIMES = 3
PARSE = """
import sys, time
from pathlib import Path
from tftracer.trace.decode.descriptors import message_class
raw = Path(sys.argv[1]).read_bytes()
parse = message_class("RunMetadata")().ParseFromString
began = time.perf_counter(), time.process_time()
parse(raw)
print(time.perf_counter() - began[0], time.process_time() - began[1])
"""


class Opened(NamedTuple):
    answered_s: float
    cpu_s: float  # until the answer came
    peak_mb: float


def ask(url: str, path: str) -> bytes:
    base, _, token = url.partition("?token=")
    headers = {"Authorization": f"Bearer {token}", "Accept-Encoding": "zstd"}
    with urllib.request.urlopen(urllib.request.Request(f"{base}api/{path}", headers=headers)) as answer:
        return bytes(answer.read())


def opened(path: Path) -> Opened:
    began = time.perf_counter()
    with viewer(path) as url:
        (process,) = psutil.Process().children()
        ask(url, "traces/1/timeline")
        answered, cpu = time.perf_counter() - began, sum(process.cpu_times()[:2])
        while json.loads(ask(url, "traces/1"))["state"] == "pending":
            time.sleep(0.1)
        peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
        assert peak is not None
        return Opened(answered, cpu, int(peak[1]) * 1024 / 1e6)


def parsed(path: Path) -> tuple[float, float]:
    """(seconds, of the processor) of protobuf's C parse, in a fresh process."""
    said = subprocess.run([sys.executable, "-c", PARSE, str(path)], check=True, capture_output=True, text=True).stdout
    wall, cpu = map(float, said.split())
    return wall, cpu


def main(paths: list[Path]) -> None:
    print(f"{'':22} {'C parse':>14} {'answered':>14} {'ratio':>12} {'peak':>8}   (seconds; of the processor)")
    for path in paths:
        rows = [(parsed(path), opened(TINY), opened(path)) for _ in range(TIMES)]
        c, c_cpu = (statistics.median(parse[i] for parse, _, _ in rows) for i in (0, 1))
        wall = statistics.median(large.answered_s - tiny.answered_s for _, tiny, large in rows)
        cpu = statistics.median(large.cpu_s - tiny.cpu_s for _, tiny, large in rows)
        peak = max(large.peak_mb for _, _, large in rows)
        print(
            f"{path.name:22} {c:6.2f}; {c_cpu:6.2f} {wall:6.2f}; {cpu:6.2f} {wall / c:5.1f}; {cpu / c_cpu:5.1f} {peak:5.0f} MB"
            f"   of {path.stat().st_size / 1e6:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]] or [trace_of(1 << 20), OUT / "loop_cut.pb"])
