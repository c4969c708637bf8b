"""What looking on costs a training: its median step while browsers look on, open traces and save, against no tracer at all.

    python benchmarks/bench_training.py [--pairs N] [--steps N] [--clients N] [--saved-mb N] [--only NAME]

The job (this script with --job) trains without end. Its steps are *watched* (the hook is called, and the load is on) or *alone*
(neither), in short blocks that come in pairs, in either order at random; the first steps after a change are left out. Of each
pair the medians of both blocks are divided, and the median of these ratios is printed, with the interval that holds it with 95%
certainty: what else the machine does meanwhile comes and goes over many pairs, and slows both blocks of most of them alike.

Three loads, each of its own: WebSocket clients that look on live; a client that opens a trace of 96,108 nodes again and again
(timeline, verdict, ops; without a cache); a session being saved, over and over. The clients are a process of their own, for
browsers are on another machine: it gives way to everything else (nice 19), so that what it burns is not counted against the
tracer. TensorFlow has one thread, so that on a machine of two cores the other is free, as the host's cores beside a GPU are.

A last row compares the training with itself beside a process that does nothing but read memory on the other core, at nice 19:
what two cores that share a cache (or one core's two threads) take from each other, whoever burns there.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

LAYERS, WIDTH, BATCH = 60, 256, 64
SETTLING = 3  # steps after a change that do not count
BIG_LAYERS = 10_676  # a chain of dense layers of which one step has some 96,108 nodes


# ------------------------------------------------------------------------------------------------------------------ the job


def chain(tf: Any, layers: int, width: int) -> Any:
    inputs = tf.placeholder(tf.float32, [None, width], name="inputs")
    hidden = inputs
    for layer in range(layers):
        hidden = tf.tanh(tf.matmul(hidden, tf.get_variable(f"w{layer}", [width, width])))
    loss = tf.reduce_mean(tf.square(hidden))
    train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss, global_step=tf.train.get_or_create_global_step())
    return inputs, train


def job(extra: list[str]) -> None:
    """Obeys lines of standard input, `on N` or `off N`: so many steps, then a line with their times in seconds."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    from tftracer import TracingServer

    tf.disable_eager_execution()
    server = TracingServer(server_port=0)
    for path in extra:
        server.load_session(path)
    hook = server.hook

    class Switch(tf.train.SessionRunHook):
        watched = False

        def begin(self) -> None:
            hook.begin()

        def after_create_session(self, session: Any, coordinator: Any) -> None:
            hook.after_create_session(session, coordinator)

        def before_run(self, context: Any) -> Any:
            return hook.before_run(context) if self.watched else None

        def after_run(self, context: Any, values: Any) -> None:
            if self.watched:
                hook.after_run(context, values)

    inputs, train = chain(tf, LAYERS, WIDTH)
    feed = {inputs: np.random.default_rng(0).normal(size=(BATCH, WIDTH))}
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    switch = Switch()
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(config=config), hooks=[switch]) as session:
        for _ in range(100):
            session.run(train, feed)
        print("URL", server.url, flush=True)
        for line in sys.stdin:
            which, steps = line.split()
            switch.watched = which == "on"
            times = []
            for _ in range(int(steps)):
                begin = perf_counter()
                session.run(train, feed)
                times.append(perf_counter() - begin)
            print("TIMES", *times, flush=True)


def start(extra: list[Path]) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, __file__, "--job", *map(str, extra)]
    environment = {**os.environ, "TFTRACER_SPOOL_DIR": tempfile.mkdtemp(), "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    return process, line_of(process, "URL")[0]


def line_of(process: subprocess.Popen[str], word: str) -> list[str]:
    """The rest of the process's next line that begins with this word."""
    assert process.stdout
    for line in process.stdout:
        if line.startswith(word):
            return line.split()[1:]
    raise SystemExit(f"a process ended before it said {word}")


def tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin
    process.stdin.write(line + "\n")
    process.stdin.flush()


# ---------------------------------------------------------------------------------------------------------------- the loads


class Api:
    """A page's requests."""

    def __init__(self, url: str) -> None:
        self.base, self.token = url.split("/?token=")

    def read(self, path: str) -> int:
        """Bytes of the answer, read in chunks and thrown away."""
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/msgpack", "Accept-Encoding": "gzip, zstd"}
        total = 0
        with urllib.request.urlopen(urllib.request.Request(self.base + path, headers=headers), timeout=600) as response:
            while chunk := response.read(1 << 16):
                total += len(chunk)
        return total


class Load:
    """What the clients' process does again and again while it is on; ``done`` counts, ``bytes`` are those read."""

    def __init__(self, api: Api) -> None:
        self.api, self.done, self.bytes = api, 0, 0
        self.wanted = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, daemon=True).start()

    def once(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        with contextlib.suppress(OSError):  # the job has been ended: so is the load
            while True:
                self.wanted.wait()
                self.once()
                self.done += 1


class Opening(Load):
    def once(self) -> None:
        for answer in ("timeline", "verdict", "ops"):
            self.wanted.wait()
            self.bytes += self.api.read(f"/api/traces/1/{answer}")


class Saving(Load):
    def once(self) -> None:
        self.bytes += self.api.read("/api/session/file")


class Browsers(Load):
    """WebSocket clients that read what comes, in an event loop of their own. ``done``: messages."""

    def __init__(self, api: Api, count: int = 100) -> None:
        super().__init__(api)
        self.count = count

    def start(self) -> None:
        """Being connected is the load."""
        loop = asyncio.new_event_loop()
        threading.Thread(target=loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._connect(), loop).result(120)

    async def _connect(self) -> None:
        from tornado.httpclient import HTTPRequest
        from tornado.websocket import websocket_connect

        for _ in range(self.count):
            headers = {"Authorization": f"Bearer {self.api.token}", "Origin": self.api.base}
            url = self.api.base.replace("http", "ws", 1) + "/api/live"
            await websocket_connect(HTTPRequest(url, headers=headers), on_message_callback=self._received)

    def _received(self, message: str | bytes | None) -> None:
        self.done += message is not None
        self.bytes += len(message or "")


class Memory(Load):
    """No client at all: reads 256 MB again and again."""

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.data = bytearray(256 << 20)

    def once(self) -> None:
        for first in range(0, len(self.data), 1 << 20):
            self.wanted.wait()
            self.bytes += len(bytes(memoryview(self.data)[first : first + (1 << 20)]))


LOADS: dict[str, type[Load]] = {"browsers": Browsers, "opening": Opening, "saving": Saving, "memory": Memory}


def client(kind: str, url: str, count: int) -> None:
    """Obeys `on`, `off` and `count`."""
    os.nice(19)
    load = Browsers(Api(url), count) if kind == "browsers" else LOADS[kind](Api(url))
    load.start()
    print("READY", flush=True)
    for line in sys.stdin:
        if line.strip() == "count":
            print("COUNT", load.done, load.bytes, flush=True)
        else:
            load.wanted.set() if line.strip() == "on" else load.wanted.clear()


@contextlib.contextmanager
def loaded(kind: str, url: str, count: int) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, __file__, "--client", kind, url, str(count)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        line_of(process, "READY")
        yield process
    finally:
        process.kill()
        process.wait()


# ------------------------------------------------------------------------------------------------------------- the measuring


class Block(NamedTuple):
    median_s: float
    mean_s: float


def block(process: subprocess.Popen[str], load: subprocess.Popen[str] | None, which: str, steps: int) -> Block:
    if load:
        tell(load, which)
    tell(process, f"{which} {SETTLING + steps}")
    times = [float(word) for word in line_of(process, "TIMES")][SETTLING:]
    return Block(statistics.median(times), statistics.fmean(times))


def measure(
    process: subprocess.Popen[str], load: subprocess.Popen[str] | None, pairs: int, steps: int, hooked: bool = True
) -> list[tuple[Block, Block]]:
    """(watched, alone) of each pair."""
    blocks, chance = [], random.Random(1)
    for _ in range(pairs):
        order = chance.sample(["on", "off"], 2)
        both = {}
        for which in order:
            if not hooked and load:
                tell(load, which)
                both[which] = block(process, None, "off", steps)
            else:
                both[which] = block(process, load, which, steps)
        blocks.append((both["on"], both["off"]))
    if load:
        tell(load, "off")
    return blocks


def interval(values: list[float]) -> tuple[float, float, float]:
    """The median, and between which two values the true one lies with a certainty of 95%."""
    ordered, n = sorted(values), len(values)
    reach = round(0.98 * n**0.5)
    return statistics.median(ordered), ordered[max(0, n // 2 - reach)], ordered[min(n - 1, n // 2 + reach)]


def report(name: str, pairs: list[tuple[Block, Block]]) -> None:
    middle, low, high = interval([on.median_s / off.median_s for on, off in pairs])
    mean, _, _ = interval([on.mean_s / off.mean_s for on, off in pairs])
    alone = statistics.median(off.median_s for _, off in pairs)
    print(
        f"{name:82s} {alone * 1e3:7.2f} ms {middle - 1:+7.2%}  ({low - 1:+.2%} to {high - 1:+.2%}; mean step {mean - 1:+.2%})",
        flush=True,
    )


# ------------------------------------------------------------------------------------------------------- what is looked at


def big_trace(folder: Path) -> Path:
    """RunMetadata of one step of some 96,108 nodes, as TensorFlow gives it."""
    path = folder / "dense10676.pb"
    if not path.exists():
        code = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "import numpy as np, tensorflow, bench_training as b\n"
            "tf = tensorflow.compat.v1; tf.disable_eager_execution()\n"
            f"x, train = b.chain(tf, {BIG_LAYERS}, 4)\n"
            "with tf.Session() as s:\n"
            "    s.run(tf.global_variables_initializer()); feed = {x: np.ones((2, 4))}; s.run(train, feed)\n"
            "    m = tf.RunMetadata(); o = tf.RunOptions(trace_level=1, output_partition_graphs=True)\n"
            f"    s.run(train, feed, options=o, run_metadata=m); open({str(path)!r}, 'wb').write(m.SerializeToString())\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)
    return path


def heavy_session(folder: Path, megabytes: int) -> Path:
    """A session file of about this size, of traces that do not compress (random bytes in place of tensor names)."""
    path = folder / f"heavy{megabytes}.tftrace"
    if not path.exists():
        write_heavy(path, megabytes)
    return path


def write_heavy(path: Path, megabytes: int) -> None:
    """Step statistics whose labels are random: each trace is one valid RunMetadata of some 16 MB that zstd hardly shrinks."""
    from tensorflow.core.protobuf import config_pb2

    from tftracer import TracingServer

    server = TracingServer(start_web_server_on_start=False, keep_traces=10_000, spool_dir=tempfile.mkdtemp())
    with tempfile.TemporaryDirectory() as folder:
        one, number = Path(folder) / "one.pb", 0
        while Path(server.recorder.session()["file"]).stat().st_size < megabytes * 1e6:
            number += 1
            metadata = config_pb2.RunMetadata()
            device = metadata.step_stats.dev_stats.add(device="/job:localhost/replica:0/task:0/device:CPU:0")
            for node in range(16):
                label = os.urandom(1 << 20).decode("latin-1")[:700_000]
                device.node_stats.add(node_name=f"n{node}", all_start_micros=node + 1, all_end_rel_micros=1, timeline_label=label)
            one.write_bytes(metadata.SerializeToString())
            server.load_session(one)
    server.save_session(path)


# --------------------------------------------------------------------------------------------------------------- the rows


def row(name: str, kind: str, extra: list[Path], options: argparse.Namespace) -> None:
    process, url = start(extra)
    try:
        if kind == "hook":
            report(name, measure(process, None, options.pairs, options.steps))
            return
        with loaded(kind, url, options.clients) as load:
            pairs = measure(process, load, options.pairs, options.steps, hooked=kind != "memory")
            tell(load, "count")
            done, size = line_of(load, "COUNT")
            report(f"{name} ({int(done):,}; {int(size) / 1e6:,.0f} MB)", pairs)
    finally:
        process.kill()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--job", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--client", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=["hook", *LOADS])
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--steps", type=int, default=25, help="of a block")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--saved-mb", type=int, default=1000)
    options = parser.parse_args()
    if options.job is not None:
        job(options.job)
    elif options.client:
        client(options.client[0], options.client[1], int(options.client[2]))
    else:
        compare(options)


def compare(options: argparse.Namespace) -> None:
    out = Path(__file__).parent / "out"
    out.mkdir(exist_ok=True)
    rows = {
        "hook": ("the hook alone, nobody looks on", list),
        "browsers": (f"{options.clients} browsers' worth of WebSocket clients (messages)", list),
        "opening": ("a trace of 96,108 nodes is opened again and again (times)", lambda: [big_trace(out)]),
        "saving": ("a session of 1 GB is saved again and again (times)", lambda: [heavy_session(out, options.saved_mb)]),
        "memory": ("no tracer, but a process beside it that reads memory (passes)", list),
    }
    print(f"{'while':82s} {'no tracer':>10s}  change of the median step", flush=True)
    for kind, (name, extra) in rows.items():
        if options.only in (None, kind):
            row(name, kind, extra(), options)


if __name__ == "__main__":
    main()
