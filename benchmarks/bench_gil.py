"""What a training's Python keeps of its speed while a trace is opened: by threads of its own process, and by a helper process.

    python benchmarks/bench_gil.py [TRACE.pb [ROUNDS]]

Two loops, each alone and beside an opening of the trace (decoding, verdict, timeline, ops): a Python loop that does nothing but
count, and real training steps on one thread of TensorFlow. Blocks of the three kinds alternate at random; what is told is the
median of each kind against the median alone. The trace is that of make_traces.py with 2^20 nodes. A helper needs a processor
of its own: on a machine that is busy with other things, all of this says little.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow

from tftracer.engine.decoded_traces import AnswerFormat, Question
from tftracer.engine.engine import Engine, HelperEngine
from tftracer.storage.tftrace_format import compress
from tftracer.storage.trace_payload import Payload, TraceKey
from tftracer.trace.model import TraceContext
from tftracer.web.worker_threads import lower_priority

tf = tensorflow.compat.v1
OUT = Path(__file__).parent / "out"
QUESTIONS = ("verdict", "timeline", "ops")
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 4
LAYERS, WIDTH = 30, 128
ALONE_S = 3.0


class Opening(threading.Thread):
    """Somebody opens the trace, which nobody has opened before."""

    def __init__(self, engine: Engine, trace: TraceKey) -> None:
        super().__init__(daemon=True)
        self.engine, self.trace, self.seconds = engine, trace, 0.0

    def run(self) -> None:
        lower_priority(5)  # as the server's workers
        began = perf_counter()
        for name in QUESTIONS:
            self.engine.ask(self.trace, Question(name), AnswerFormat(True, "zstd"))
        self.seconds = perf_counter() - began


def count(running: Callable[[], bool]) -> list[float]:
    """Seconds of each 100,000 turns of a loop that holds the interpreter's lock."""
    times = []
    while running():
        began, total = perf_counter(), 0
        for turn in range(100_000):
            total += turn
        times.append(perf_counter() - began)
    return times


def training() -> Callable[[Callable[[], bool]], list[float]]:
    inputs = tf.placeholder(tf.float32, [None, WIDTH])
    hidden = inputs
    for layer in range(LAYERS):
        hidden = tf.tanh(tf.matmul(hidden, tf.get_variable(f"w{layer}", [WIDTH, WIDTH])))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(tf.square(hidden)))
    session = tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1))
    session.run(tf.global_variables_initializer())
    feed = {inputs: np.ones((64, WIDTH), np.float32)}

    def steps(running: Callable[[], bool]) -> list[float]:
        times = []
        while running():
            began = perf_counter()
            session.run(train, feed)
            times.append(perf_counter() - began)
        return times

    steps(seconds(1.0))
    return steps


def seconds(length: float) -> Callable[[], bool]:
    end = perf_counter() + length
    return lambda: perf_counter() < end


def measure(loop: Callable[[Callable[[], bool]], list[float]], engines: dict[str, Engine | None], size: int) -> None:
    medians: dict[str, list[float]] = {name: [] for name in engines}
    worst: dict[str, list[float]] = {name: [] for name in engines}
    openings: dict[str, list[float]] = {name: [] for name in engines}
    for turn in range(ROUNDS):
        for name in random.sample(list(engines), len(engines)):
            engine = engines[name]
            if engine is None:
                times = loop(seconds(ALONE_S))
            else:
                opening = Opening(engine, TraceKey(f"{loop.__name__} {turn}", 1, 0.0, size))
                opening.start()
                times = loop(opening.is_alive)
                openings[name].append(opening.seconds)
            medians[name].append(statistics.median(times))
            worst[name].append(max(times))
    alone = statistics.median(medians["alone"])
    for name in engines:
        median = statistics.median(medians[name])
        took = f", the opening took {statistics.median(openings[name]):.1f} s" if openings[name] else ""
        speed = (
            f"{alone / median:5.0%} of its speed alone, longest {statistics.median(worst[name]) / alone:6.1f} times the median"
        )
        print(f"{loop.__name__:6} beside {name:8}: median {median * 1e3:7.2f} ms, {speed}{took}", flush=True)


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else OUT / "loop_cut.pb"
    raw = path.read_bytes()
    payload = Payload(compress(raw), len(raw), TraceContext(step=1))
    tf.disable_eager_execution()
    helped = HelperEngine(lambda trace: payload)
    assert helped.helper.is_usable()
    engines: dict[str, Engine | None] = {"alone": None, "threads": Engine(lambda trace: payload), "helper": helped}
    print(f"{path.name}, {len(raw) / 1e6:.0f} MB; load of the machine before: {os.getloadavg()[0]:.1f}")
    for loop in (count, training()):
        measure(loop, engines, len(raw))
    helped.close()


if __name__ == "__main__":
    main()
