"""Each analysis from 10^3 to 2^20 nodes, beside protobuf's C parse of the same bytes in the same run.

The traces are benchmarks/make_traces.py's real ones. A Python loop runs beside each analysis: how much of its speed it
keeps tells
how long the GIL is held. ``python benchmarks/bench_analyses.py [FILE...]``; no TensorFlow.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from repeated_trace import trace_of

from tftracer.trace.answers import Answers
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.model import TraceContext

OUT = Path(__file__).parent / "out"
FILES = ["loop_1000.pb", "loop_10000.pb", "loop_100000.pb", "loop_cut.pb"]
QUESTIONS: dict[str, Callable[[Answers], object]] = {
    "decode": lambda a: a.trace,
    "lanes": lambda a: a.layout,
    "findings": lambda a: a.findings(),
    "timeline": lambda a: a.timeline(),
    "outputs": lambda a: a.outputs,
    "graph": lambda a: a.graph,
    "FLOPs and bytes": lambda a: a.arithmetic,
    "ops by type": lambda a: a.ops("type"),
    "ops by name": lambda a: a.ops("name"),
    "ops by scope": lambda a: a.ops("scope"),
    "layers": lambda a: a.layers(),
    "budget": lambda a: a.budget(),
    "communication": lambda a: a.communication(),
    "scheduling": lambda a: a.scheduling(),
    "cost": lambda a: a.cost(),
    "verdict": lambda a: a.verdict(),
    "critical path": lambda a: a.critical_path(),
    "slack": lambda a: a.slack,
    "memory": lambda a: a.memory(),
    "memory by layer": lambda a: a.layers("memory"),
    "roofline": lambda a: a.roofline(),
    "a node": lambda a: a.node(a.trace.n // 2),
}
ON_OPENING = ("decode", "lanes")
READ_ONCE = ("outputs", "graph")  # what memory and the critical path read; FLOPs share it
LONG = ("critical path", "slack", "memory", "memory by layer", "a node")
CHEAP = [name for name in QUESTIONS if name not in (*ON_OPENING, *READ_ONCE, *LONG)]


class Beside:
    """A Python loop on another thread; ``rate`` is its turns a second since the last look."""

    def __init__(self) -> None:
        self.turns, self.over = 0, False
        self.then, self.turns_then = time.perf_counter(), 0
        threading.Thread(target=self._run, daemon=True).start()
        self.look()

    def _run(self) -> None:
        while not self.over:
            self.turns += 1

    def look(self) -> float:
        now, turns = time.perf_counter(), self.turns
        rate = (turns - self.turns_then) / (now - self.then)
        self.then, self.turns_then = now, turns
        return rate


def best(ask: Callable[[], object], times: int) -> float:
    took = []
    for _ in range(times):
        gc.collect()
        began = time.perf_counter()
        ask()
        took.append(time.perf_counter() - began)
    return min(took)


def alone(raw: bytes) -> dict[str, float]:
    """Seconds of each answer, asked one after the other as the page does: what two share is counted where it is first needed."""
    answers, seconds = Answers(raw, TraceContext()), {}
    for name, ask in QUESTIONS.items():
        began = time.perf_counter()
        ask(answers)
        seconds[name] = time.perf_counter() - began
    return seconds


def kept(raw: bytes) -> dict[str, float]:
    """The share of its speed that a Python loop beside each answer keeps."""
    answers, beside = Answers(raw, TraceContext()), Beside()
    gc.collect()
    time.sleep(0.5)
    free, shares = beside.look(), {}
    for name, ask in QUESTIONS.items():
        beside.look()
        ask(answers)
        shares[name] = beside.look() / free
    beside.over = True
    return shares


def bench(path: Path) -> None:
    raw = path.read_bytes()
    parse = best(lambda: message_class("RunMetadata").FromString(raw), 2)
    times = 1 if len(raw) > 1 << 26 else 3
    runs = [alone(raw) for _ in range(times)]
    seconds = {name: min(run[name] for run in runs) for name in QUESTIONS}
    shares = kept(raw)
    nodes = Answers(raw, TraceContext()).trace.n
    print(f"\n{path.name}: {nodes:,} nodes, {len(raw) / 1e6:,.1f} MB; protobuf's C parse {parse * 1e3:,.1f} ms")
    print(f"  {'':16}{'ms':>10}{'x parse':>9}{'a loop beside keeps':>22}")
    for name in QUESTIONS:
        beside = f"{shares[name]:.0%}" if seconds[name] > 0.05 else "-"
        print(f"  {name:16}{seconds[name] * 1e3:10,.1f}{seconds[name] / parse:9.2f}{beside:>22}")
    for title, names in (("decode + lanes", ON_OPENING), ("all but memory, critical path", CHEAP)):
        total = sum(seconds[n] for n in names)
        print(f"  {title}: {total * 1e3:,.1f} ms, {total / parse:.2f}x the parse (at most 2 are allowed at 2^20)")


def main() -> None:
    paths = [Path(a) for a in sys.argv[1:]] or [trace_of(8_009), trace_of(96_108), *(OUT / name for name in FILES)]
    for path in paths:
        if path.exists():
            bench(path)
        else:
            print(f"{path} is not there: run benchmarks/make_traces.py with TensorFlow first")


if __name__ == "__main__":
    main()
