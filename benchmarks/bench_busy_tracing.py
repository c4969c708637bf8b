"""Traces on a busy machine: which requests are served, how soon, and what that takes of the training's thread.

    python benchmarks/bench_busy_tracing.py [--busy N] [--requests N] [--all N] [--only sessions|functions]

N processes that do nothing but compute run beside a training, for minutes at most. The next step is requested again and again,
then every step is traced; for sessions and for tf.function, with a helper process that works and with one that is stopped
(SIGSTOP). Told are how many requests were served within ten steps, how many steps were traced where all were to be, how many
traces the session's file has, what the tracer took of the training's thread around a traced step, and what whole steps took: the
traced ones, and those between, which the busy processes hold up as well.

On Linux the tracer's time is told in parts, too: on a CPU, waiting for one, and blocked (a lock, the profile before, the disk).
Waiting for a CPU is what the scheduler does to any thread: a loop that takes as much of a CPU and waits for nothing is the
control.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numpy as np

from tftracer.capture.function_runs import FunctionRuns
from tftracer.capture.functions.profiled_calls import FunctionTraces
from tftracer.capture.hook import HookMethods
from tftracer.capture.recorded_steps import Capture, tracer_ns
from tftracer.session.files.saved import open_session
from tftracer.session.live import Recorder

LONGEST_S = 400  # no busy process outlives this
BUSY = f"import time\nend = time.monotonic() + {LONGEST_S}\nwhile time.monotonic() < end: pass"
WITHIN = 10  # steps after a request
BETWEEN = 5  # steps between two requests
#: What the tracer does on the training's thread before and after a traced step.
HOLDING = [(HookMethods, "_trace_args"), (HookMethods, "slow_after_run"), (FunctionTraces, "begin"), (FunctionTraces, "end")]
MIN_NS = 100_000


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    command = [sys.executable, "-c", BUSY]
    processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def thread_times() -> tuple[int, int, int]:
    """In ns: the clock, how long this thread was on a CPU, and how long it waited for one."""
    on_cpu, waited, _ = map(int, Path("/proc/thread-self/schedstat").read_bytes().split())
    return perf_counter_ns(), on_cpu, waited


class Parts:
    """What calls took of their thread, in parts. ``control`` takes as much of a CPU as they did, and waits for nothing."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []  # clock, on a CPU, waited for one

    def of(self, owner: Any, name: str) -> None:
        method = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            before = thread_times()
            try:
                return method(*args, **kwargs)
            finally:
                took = [after - begun for after, begun in zip(thread_times(), before)]
                if took[0] > MIN_NS:  # else it had nothing to trace
                    self.calls.append(took)

        setattr(owner, name, timed)

    def control(self) -> Parts:
        made, cpu_ns = Parts(), np.median([call[1] for call in self.calls])
        for _ in self.calls:
            before, end_ns = thread_times(), thread_time_ns() + cpu_ns
            while thread_time_ns() < end_ns:
                pass
            made.calls.append([after - begun for after, begun in zip(thread_times(), before)])
        return made

    def __str__(self) -> str:
        clock, on_cpu, waited = np.array(self.calls).T
        blocked = np.maximum(clock - on_cpu - waited, 0)
        return f"on a CPU {described(on_cpu)}, waiting for one {described(waited)}, blocked {described(blocked)}"


class Training:
    """A training whose steps take some milliseconds; ``held_ns``: what the tracer took of its thread around each traced step."""

    def __init__(self, recorder: Recorder, step: Callable[[], object], title: str) -> None:
        self.recorder, self._step = recorder, step
        self.held_ns: list[int] = []
        self.traced = 0
        self.steps_ns: dict[bool, list[int]] = {True: [], False: []}  # by whether the step was traced
        # Each call is timed where the training makes it; mypy takes methods for constants.
        recorder.queue.add = self._noted(recorder.queue.add)  # type: ignore[assignment, method-assign]
        for _ in range(20):
            step()
        recorder.flush()
        self.run = next(run for run in recorder.runs() if title in run["title"])["id"]

    def _noted(self, add: Callable[[Any], None]) -> Callable[[Any], None]:
        def noted(event: Any) -> None:
            if event[-1] is not None:
                self.held_ns.append(sum(tracer_ns(event[-1])))
                self.traced += isinstance(event[-1], Capture)
            add(event)

        return noted

    def step(self) -> None:
        before, begun = len(self.held_ns), perf_counter_ns()
        self._step()
        self.steps_ns[len(self.held_ns) > before].append(perf_counter_ns() - begun)

    def requests(self, count: int) -> int:
        """How many of so many requests, one after another, were served within ``WITHIN`` steps."""
        served = 0
        for _ in range(count):
            before = self.traced
            self.recorder.request_traces(self.run, 1)
            for _ in range(WITHIN):
                self.step()
                if self.traced > before:
                    served += 1
                    break
            else:
                self.recorder.request_traces(self.run, 0)
            for _ in range(BETWEEN):
                self.step()
        return served

    def every_step(self, count: int) -> int:
        """How many of so many steps were traced."""
        before = self.traced
        self.recorder.set_trace_all(True)
        for _ in range(count):
            self.step()
        self.recorder.set_trace_all(False)
        return self.traced - before


@contextlib.contextmanager
def sessions(recorder: Recorder) -> Iterator[Training]:
    import tensorflow

    from tftracer.capture.hook import make_hook

    tf = tensorflow.compat.v1
    with tf.Graph().as_default():
        hidden = inputs = tf.placeholder(tf.float32, [None, 128])
        for layer in range(20):
            hidden = tf.tanh(tf.matmul(hidden, tf.get_variable(f"w{layer}", [128, 128])))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(hidden), tf.train.get_or_create_global_step())
        feed = {inputs: np.ones((64, 128), np.float32)}
        with tf.train.MonitoredTrainingSession(hooks=[make_hook(recorder)]) as session:
            yield Training(recorder, lambda: session.run(train, feed), "GradientDescent")


@contextlib.contextmanager
def functions(recorder: Recorder) -> Iterator[Training]:
    import tensorflow as tf

    weights = [tf.Variable(tf.ones((128, 128)) / 128) for _ in range(20)]
    x = tf.ones((64, 128))

    @tf.function
    def train_step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            for weight in weights:
                x = tf.tanh(tf.matmul(x, weight))
            loss = tf.reduce_mean(x)
        for weight, gradient in zip(weights, tape.gradient(loss, weights)):
            weight.assign_sub(0.01 * gradient)
        return loss

    watching = FunctionRuns(recorder.queue)
    watching.watch()
    try:
        yield Training(recorder, lambda: train_step(x), "train_step")
    finally:
        watching.stop()


def measure(training: Any, requests: int, every: int, stopped: bool) -> None:
    recorder = Recorder(spool_dir=tempfile.mkdtemp(), keep_traces=every, slow_factor=3.0).start()
    parts = Parts()
    if sys.platform == "linux":
        for owner, name in HOLDING:
            parts.of(owner, name)
    with training(recorder) as loop:
        if stopped:
            recorder.engine.helper.is_usable()
            helper = recorder.engine.helper.pid
            assert helper is not None, "no helper process could be started"
            os.kill(helper, signal.SIGSTOP)
        served = loop.requests(requests)
        traced = loop.every_step(every)
        control = parts.control()  # while the other processes compute
    problems = [problem["message"] for problem in recorder.session()["problems"]]
    recorder.close()
    kept = sum(len(run["traces"]) for run in open_session(recorder.session()["file"]).runs())
    print(f"    requests {served} of {requests} served, every step {traced} of {every} traced, {kept} traces in the file")
    print(f"    the tracer took {described(loop.held_ns)} of the thread around such a step")
    if parts.calls:
        print(f"    of that, in each call: {parts}")
        print(f"    a loop that waits for nothing: {control}")
    print(f"    traced steps took {described(loop.steps_ns[True])}; those between {described(loop.steps_ns[False])}")
    for problem in problems:
        print(f"    said: {problem}")


def described(times_ns: Any) -> str:
    median, p95, longest = np.percentile(times_ns, [50, 95, 100]) / 1e6
    return f"{median:.1f} ms (p95 {p95:.0f}, longest {longest:.0f})"


KINDS = {"sessions": sessions, "functions": functions}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--busy", type=int, default=8)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--all", type=int, default=60)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--here", action="store_true", help="measure in this process: the training of --only")
    parser.add_argument("--stopped", action="store_true", help="with a helper process that is stopped")
    options = parser.parse_args()
    if options.here:
        measure(KINDS[options.only], options.requests, options.all, options.stopped)
        return
    for kind in [options.only] if options.only else KINDS:
        for count, stopped in ((0, False), (options.busy, False), (options.busy, True)):
            print(f"{kind}, {count} busy processes{', the helper process stopped' if stopped else ''}:", flush=True)
            same = ["--only", kind, "--requests", str(options.requests), "--all", str(options.all)]
            with busy(count):
                subprocess.run(
                    [sys.executable, __file__, "--here", *same, *["--stopped"] * stopped], check=True, timeout=LONGEST_S
                )


if __name__ == "__main__":
    main()
