"""What the watch over slow steps costs a training, and how far its lines can be trusted.

    python benchmarks/bench_stalls.py [--pairs N] [--steps N] [--py-spy PATH] [--only training|balanced|idle|memory|lines]

training: steps of one session in blocks of a second that come in pairs, in either order at random, with the watch and without. A
block begins when the watch's processes have started, which takes half a second of two processors once in a training. Printed: the
median of the pairs' ratios with the interval that holds it with 95% certainty, for each block's median and its p99. There are as
many pairs as make the median's interval as narrow as 0.2%, at most 600.
balanced: 10,000 steps of a training whose steps are alike, with everything on: what was called slow, by cause. It should be
nothing but what the machine did.
idle: CPU that the watch uses while nothing is slow. memory: over a million steps, 10,000 of them slow.
lines: 10 s of the time between steps, in parts whose lengths are measured; what the profile says of them, and py-spy beside it.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import gc
import json
import os
import random
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter, perf_counter_ns

import numpy as np

from tftracer.capture.function_runs import FunctionRuns
from tftracer.capture.steps.queue import StepQueue
from tftracer.capture.traces.trace_expected_slow_steps import ExpectedTraces
from tftracer.run_handle import RunHandle
from tftracer.session.live import Recorder
from tftracer.slow.watch.watch import SlowWatch
from tftracer.slow.watch_results import GapProfile, Stall

BLOCK = 500
#: Steps run for this time before a block with the watch, and before one without, in seconds.
SETTLE_WATCHED_S, SETTLE_S = 3.0, 0.3
#: Pairs of blocks: at least and at most, and the width of the interval that is enough.
MIN_PAIRS, MAX_PAIRS, NARROW = 60, 600, 0.002
MS = 1_000_000


def interval(values: list[float]) -> tuple[float, float]:
    """The order statistics that hold the median with 95% certainty."""
    ordered, count = sorted(values), len(values)
    reach = round(0.98 * count**0.5)
    return ordered[max(0, count // 2 - reach)], ordered[min(count - 1, count // 2 + reach)]


def described(values: list[float]) -> str:
    low, high = interval(values)
    return f"{statistics.median(values) - 1:+.2%} ({low - 1:+.2%} to {high - 1:+.2%})"


def is_enough(ratios: list[float], wanted: int) -> bool:
    """``wanted`` pairs; 0: as many as make the interval narrow."""
    if wanted:
        return len(ratios) >= wanted
    low, high = interval(ratios) if len(ratios) >= MIN_PAIRS else (0.0, 1.0)
    return high - low <= NARROW or len(ratios) >= MAX_PAIRS


# ------------------------------------------------------------------------------------------------------------- training


@contextlib.contextmanager
def a_training(recorder: Recorder) -> Iterator[Callable[[], object]]:
    """What runs a step of some 2 ms."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow

    from tftracer.capture.hook import make_hook

    tf = tensorflow.compat.v1
    with tf.Graph().as_default():
        hidden = inputs = tf.placeholder(tf.float32, [None, 128])
        for layer in range(20):
            hidden = tf.tanh(tf.matmul(hidden, tf.get_variable(f"w{layer}", [128, 128])))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(hidden), tf.train.get_or_create_global_step())
        feed = {inputs: np.ones((64, 128), np.float32)}
        with tf.train.MonitoredSession(hooks=[make_hook(recorder)]) as session:
            yield lambda: session.run(train, feed)
    recorder.close()


def training(pairs: int) -> None:
    recorder = Recorder(spool_dir=tempfile.mkdtemp()).start()
    ratios: dict[str, list[float]] = {"median": [], "p99": []}
    with a_training(recorder) as step:

        def block(settle_s: float = SETTLE_S) -> dict[str, float]:
            times: list[float] = []
            settled_at = perf_counter() + settle_s
            while perf_counter() < settled_at:
                step()
            for _ in range(BLOCK):
                start = perf_counter()
                step()
                times.append(perf_counter() - start)
            return {"median": statistics.median(times), "p99": sorted(times)[round(0.99 * len(times)) - 1]}

        def watched() -> dict[str, float]:
            watch = SlowWatch(recorder.queue, 3.0, ExpectedTraces(recorder.queue.requests, recorder.queue.count_steps))
            watch.start()
            try:
                return block(SETTLE_WATCHED_S)
            finally:
                watch.stop()

        block()
        while not is_enough(ratios["median"], pairs):
            order = [watched, block] if random.random() < 0.5 else [block, watched]
            results = {run: run() for run in order}
            for name, values in ratios.items():
                values.append(results[watched][name] / results[block][name])
    for name, values in ratios.items():
        print(f"a step's {name}, with the watch against without, {len(values)} pairs of {BLOCK} steps: {described(values)}")


# ------------------------------------------------------------------------------------------------------------- balanced


def balanced(steps: int) -> None:
    recorder = Recorder(spool_dir=tempfile.mkdtemp(), slow_factor=3.0).start()
    with a_training(recorder) as step:
        begun = perf_counter()
        for _ in range(steps):
            step()
        passed = perf_counter() - begun
        recorder.flush()
        slow = recorder.all_stalls()
    counts = collections.Counter(stall["cause"] for stall in slow["stalls"])
    print(f"balanced: {steps:,} steps in {passed:.0f} s; slow: {slow['count']}, of them had no CPU: {counts.pop('machine', 0)}")
    for stall in slow["stalls"]:
        if stall["cause"] != "machine":
            took = f"{stall['duration_s'] * 1e3:.0f} ms, usually {(stall['expected_s'] or 0) * 1e3:.0f} ms"
            print(f"    step {stall['step']}, {stall['where']}: {took}. {stall['text']}. {' '.join(stall['evidence'])}")


# ----------------------------------------------------------------------------------------------------------------- idle


class Loop:
    """Named steps under the watch."""

    def __init__(self) -> None:
        self.queue = StepQueue()
        self.watch = SlowWatch(self.queue, 3.0, ExpectedTraces(self.queue.requests, self.queue.count_steps))
        self._functions = FunctionRuns(self.queue)
        self._run = self._functions.named_step("train")
        self.watch.start()

    def step(self, inside: Callable[[], object]) -> None:
        with self._functions.calls.step(self._run):
            inside()


def idle(seconds: float = 10.0) -> None:
    loop = Loop()
    thread = next(thread for thread in threading.enumerate() if thread.name == "tftracer-watch")
    schedstat = Path(f"/proc/self/task/{thread.native_id}/schedstat")
    values, start, before, steps = np.random.default_rng(0).random((300, 300)), perf_counter(), 0, 0
    while perf_counter() - start < seconds:
        loop.step(lambda: values @ values)
        steps += 1
        if steps == 30:
            loop.queue.count_steps()
            begun, before = perf_counter(), int(schedstat.read_text().split()[0])
    used, passed = int(schedstat.read_text().split()[0]) - before, perf_counter() - begun
    loop.watch.stop()
    print(f"idle: {used / passed / 1e9:.2%} of a core; {steps / seconds:.0f} steps a second")


# --------------------------------------------------------------------------------------------------------------- memory


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def memory(steps: int = 1_000_000, each: int = 100) -> None:
    loop, run, now, stalls, after_warm_up = Loop(), RunHandle("train", (), (), ""), 10**9, 0, 0.0
    gc.collect()
    for number in range(1, steps + 1):
        took = 300 * MS if number % each == 0 else 5 * MS
        loop.queue.add_counted((run, now, now + took, None, None, None), 7)
        now += took + MS
        if number % 2000 == 0:
            loop.queue.counted.clear()
            while loop.watch.pending:  # the watch reports what was found
                time.sleep(0.001)
            stalls += sum(isinstance(record, Stall) for record in loop.queue.slow.take())
        if number == steps // 10:
            after_warm_up = resident_mb()
    early = f"{after_warm_up:.1f} MB after {steps // 10:,} steps"
    print(f"memory: {early}, {resident_mb():.1f} MB after {steps:,} with {stalls:,} stalls")
    loop.watch.stop()


# ---------------------------------------------------------------------------------------------------------------- lines

TEXT = json.dumps([{"id": number, "box": [number * 0.1] * 3, "name": f"item{number}"} for number in range(1500)])
FLOATS = [random.random() for _ in range(20_000)]
POOL = np.random.default_rng(0).integers(0, 255, (256, 64, 64, 3), dtype=np.uint8)
OBJECTS = [(number, [number]) for number in range(300_000)]
LOCK = threading.Lock()


def augment() -> None:
    images = POOL[np.random.default_rng(1).permutation(256)[:64]][:, :, ::-1].astype(np.float32)
    images += np.random.default_rng(2).normal(0, 4, images.shape)
    np.clip(images, 0, 255)


def decode_json() -> None:
    json.loads(TEXT)


def throttle() -> None:
    time.sleep(0.003)


def wait_lock() -> None:
    with LOCK:
        pass


def sort_all() -> None:
    sorted(FLOATS)


def python_loop() -> None:
    total = 0
    for number in range(40_000):
        total += number * number


def dump_log() -> None:
    json.dumps([1.5] * 6000)


def tidy() -> None:
    gc.collect()


PARTS = [augment, decode_json, throttle, wait_lock, sort_all, python_loop, dump_log]


def hold_lock() -> None:
    while True:
        with LOCK:
            time.sleep(0.004)
        time.sleep(0.004)


def lines(py_spy: str | None) -> None:
    threading.Thread(target=hold_lock, daemon=True).start()
    gc.disable()
    loop = Loop()
    truth: collections.Counter[str] = collections.Counter()
    spy, report = None, Path(tempfile.mkdtemp()) / "raw.txt"
    step, has_begun, is_over = 0, False, False
    while not is_over:
        times, start = collections.Counter[str](), perf_counter_ns()
        for part in PARTS:
            begin = perf_counter_ns()
            part()
            times[part.__name__] += perf_counter_ns() - begin
        if step % 40 == 0:
            begin = perf_counter_ns()
            tidy()
            times["gc"] += perf_counter_ns() - begin
        times["(whole)"] += perf_counter_ns() - start
        loop.step(lambda: time.sleep(0.004))
        step += 1
        if step == 30:
            loop.queue.count_steps()
            loop.queue.slow.profile_requested.set()
        is_profiled = loop.queue.slow.run_profiled is not None
        is_over = has_begun and not is_profiled
        if is_profiled:  # it has the steps that ended while it was taken
            truth.update(times)
        if is_profiled and not has_begun:
            has_begun = True
            if py_spy:
                command = [py_spy, "record", "-p", str(os.getpid()), "-d", "9", "-r", "100", "-f", "raw", "-o", str(report)]
                spy = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    loop.watch.stop()
    gc.enable()
    profile = next(record for record in loop.queue.slow.take() if isinstance(record, GapProfile))
    by_profile: collections.Counter[str] = collections.Counter({"gc": round(profile.gc_s * 1e9)})
    for stack in profile.stacks:
        name = part_of([frame.function for frame in stack.frames])
        # A collection has no samples: it is measured.
        by_profile["(other)" if name == "gc" else name] += round(stack.seconds * 1e9)
    if spy:
        spy.wait()
    others = spied(report) if report.exists() else None
    show(truth, by_profile, others, profile)


def part_of(functions: list[str]) -> str:
    if "tidy" in functions:
        return "gc"
    return next((part.__name__ for part in PARTS if part.__name__ in functions), "(other)")


def spied(report: Path) -> collections.Counter[str]:
    """py-spy's samples between steps."""
    samples: collections.Counter[str] = collections.Counter()
    for line in report.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        functions = [frame.partition(" (")[0] for frame in stack.split(";")]
        if "lines" in functions and "step" not in functions:
            samples[part_of(functions)] += int(count)
    return samples


def show(
    truth: collections.Counter[str],
    by_profile: collections.Counter[str],
    spy: collections.Counter[str] | None,
    profile: GapProfile,
) -> None:
    """``truth``, ``by_profile``: nanoseconds by part; ``spy``: samples."""
    whole = truth.pop("(whole)")
    truth["(other)"] = whole - sum(truth.values())
    print(f"lines: {profile.samples} samples; clocks say {profile.between_s:.2f} s between steps")
    print(f"garbage collection: {truth['gc'] * 1e-9:.3f} s by a clock around it, {profile.gc_s:.3f} s in the profile")
    sources = {"truth": truth, "profile": by_profile} | ({"py-spy": spy} if spy else {})
    print(f"{'part':14}" + "".join(f"{name:>10}" for name in sources))
    shares = {name: {part: counts[part] / sum(counts.values()) for part in truth} for name, counts in sources.items()}
    for part in truth:
        print(f"{part:14}" + "".join(f"{shares[name][part]:10.1%}" for name in sources))
    for name in list(sources)[1:]:
        wrong = sum(abs(shares[name][part] - shares["truth"][part]) for part in truth) / 2
        print(f"{name}: {wrong:.1%} of the time on the wrong part")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=0, help="0: until the interval is narrow")
    parser.add_argument("--steps", type=int, default=10_000, help="of the balanced training")
    parser.add_argument("--py-spy", help="the program, to compare with")
    parser.add_argument("--only", choices=["training", "balanced", "idle", "memory", "lines"])
    options = parser.parse_args()
    print("load average", *(f"{load:.1f}" for load in os.getloadavg()))
    parts = {
        "lines": lambda: lines(options.py_spy),
        "idle": idle,
        "memory": memory,
        "training": lambda: training(options.pairs),
        "balanced": lambda: balanced(options.steps),
    }
    for name, measure in parts.items():
        if options.only in (None, name):
            measure()


if __name__ == "__main__":
    main()
