"""Resident memory: over 10^6 steps of a bare loop around the hook beside a hook that does nothing, over 1,000 traced steps, and
of opening a session of 2 GB.

    python benchmarks/bench_memory.py [--steps N] [--traces N] [--only no-op|hooked|paced|traces|open]

The bare loop calls before_run and after_run as a MonitoredSession does, without a session between them: a million real steps
would take an hour and show the same. It is far faster than any training, so that the writer falls behind and its bounded queues
fill; the paced loop makes 2,000 steps a second, as a small model does. The traces are of a real model of 20 dense layers. Each
part runs in a process of its own.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

PARTS = ("no-op", "hooked", "paced", "traces", "open")
PACED_STEPS, PACED_PER_S = 60_000, 2_000


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def row(what: str, done: int, server: Any = None) -> None:
    gc.collect()
    line = ""
    if server:
        server.recorder.flush()
        spool = Path(server.recorder.session()["file"])
        line = f"spool {spool.stat().st_size / 1e6 if spool.is_file() else 0.0:8.1f} MB, lost {server.recorder.queue.lost:,}"
    print(f"{what:28s} {done:>10,} {resident_mb():10.1f} MB   {line}", flush=True)


@contextmanager
def training(hooked: bool) -> Iterator[tuple[Any, Any, Callable[[], None], Any]]:
    """A real model's session: (server, hook, one step of it, the SessionRunArgs of a step)."""
    import tensorflow

    from tftracer import TracingServer

    tf = tensorflow.compat.v1
    tf.disable_eager_execution()
    server = TracingServer(server_port=0, spool_dir=tempfile.mkdtemp()) if hooked else None
    hook = server.hook if server else tf.train.SessionRunHook()
    inputs = tf.placeholder(tf.float32, [None, 32], name="inputs")
    hidden = inputs
    for layer in range(20):
        hidden = tf.tanh(tf.matmul(hidden, tf.get_variable(f"w{layer}", [32, 32])))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(tf.reduce_mean(hidden), tf.train.get_or_create_global_step())
    random = np.random.default_rng(0)
    with tf.train.MonitoredSession(hooks=[hook]) as session:

        def step() -> None:
            session.run(train, {inputs: random.normal(size=(8, 32))})

        for _ in range(200):
            step()
        yield server, hook, step, tf.train.SessionRunArgs(train, {inputs: np.zeros((8, 32))})


def bare_steps(what: str, server: Any, hook: Any, arguments: Any, steps: int, per_s: float = float("inf")) -> None:
    import tensorflow

    tf = tensorflow.compat.v1  # importing from it would load what a training does not
    context_of, values = tf.train.SessionRunContext, tf.train.SessionRunValues(None, None, tf.RunMetadata())
    marks = {steps // 100, steps // 10, *(steps * part // 5 for part in range(1, 6))}
    row(what, 0, server)
    began = time.perf_counter()
    for number in range(1, steps + 1):
        context = context_of(arguments, None)
        hook.before_run(context)
        hook.after_run(context, values)
        if number % 100 == 0:
            time.sleep(max(0.0, began + number / per_s - time.perf_counter()))
        if number in marks:
            row(what, number, server)


def no_op(options: argparse.Namespace) -> None:
    with training(hooked=False) as (server, hook, _, arguments):
        bare_steps("bare steps, no-op hook", server, hook, arguments, options.steps)


def hooked(options: argparse.Namespace) -> None:
    with training(hooked=True) as (server, hook, _, arguments):
        bare_steps("bare steps", server, hook, arguments, options.steps)


def paced(options: argparse.Namespace) -> None:
    with training(hooked=True) as (server, hook, _, arguments):
        bare_steps(f"{PACED_PER_S:,} steps a second", server, hook, arguments, min(PACED_STEPS, options.steps), PACED_PER_S)


def traces(options: argparse.Namespace) -> None:
    with training(hooked=True) as (server, _, step, _):
        row("traces", 0, server)
        for number in range(1, options.traces + 1):
            server.trace_next(steps=1)
            step()
            server.recorder.flush()  # else requests wait for the disk, and steps go by untraced
            if number % max(1, options.traces // 5) == 0:
                row("traces", number, server)
        kept = [trace["id"] for run in server.recorder.runs() for trace in run["traces"]]
        assert kept == list(range(1, options.traces + 1)), kept  # asked for one by one: none makes way
        server.save_session(Path(tempfile.mkdtemp()) / "session.tftrace")
        row("saved", 1, server)


def open_large(options: argparse.Namespace) -> None:
    """Sessions of 2 GB, whose traces' payloads are holes in the file: few large ones, and as many as a 20-layer model's."""
    from tftracer.session.files.saved import open_session

    with tempfile.TemporaryDirectory() as folder:
        for count, size in ((20, 107_400_000), (2_000, 1_074_000), (20_000, 107_400)):
            path = Path(folder) / f"{count}.tftrace"
            write_sparse(path, count, size)
            before, began, cpu_began = resident_mb(), time.perf_counter(), time.process_time()
            session = open_session(path)
            took, cpu = time.perf_counter() - began, time.process_time() - cpu_began
            runs = session.runs()
            assert sum(len(run["traces"]) for run in runs) == count and not session.session()["cut"]
            print(
                f"opened {path.stat().st_size / 1e9:5.2f} GB, {count:>6,} traces {took * 1e3:8.1f} ms ({cpu * 1e3:.1f} of CPU)"
                f" {resident_mb() - before:10.1f} MB more",
                flush=True,
            )
            del session, runs


def write_sparse(path: Path, count: int, size: int) -> None:
    import msgpack

    from tftracer.storage import tftrace_format as tftrace_format

    finding = {"code": "gpu_missing", "severity": "info", "message": "x" * 150, "remedy": "x" * 100}
    with path.open("wb") as file:
        file.write(tftrace_format.header() + tftrace_format.record("run", {"id": 1, "title": "train", "fetches": ["train"]}))
        for number in range(1, count + 1):
            meta = {
                "id": number,
                "run_id": 1,
                "step": number,
                "started_at": 1.7e9,
                "duration_s": 0.01,
                "nodes": 8009,
                "devices": ["/job:localhost/replica:0/task:0/device:CPU:0"],
                "findings": [finding, finding],
                "context": {"step_s": 0.01, "median_s": 0.01, "gpus": 0, "trace_level": "SOFTWARE_TRACE"},
                "headline": "x" * 100,
                "raw_size": size * 12,
                "payload_crc": 0,
            }
            packed = msgpack.packb(meta)
            head = [msgpack.packb(part) for part in ("trace", tftrace_format.record_crc(b"trace", packed, size), packed)]
            file.write(b"\x94" + b"".join(head) + b"\xc6" + size.to_bytes(4, "big"))
            file.seek(size, os.SEEK_CUR)
        file.write(tftrace_format.end_record({"run": 1, "trace": count}))


RUN: dict[str, Callable[[argparse.Namespace], None]] = dict(zip(PARTS, (no_op, hooked, paced, traces, open_large)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--traces", type=int, default=1_000)
    parser.add_argument("--only", choices=PARTS)
    options = parser.parse_args()
    if options.only:
        RUN[options.only](options)
        return
    for part in PARTS:
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--only", part], check=True)


if __name__ == "__main__":
    main()
