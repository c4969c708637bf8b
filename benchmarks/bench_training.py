"""What looking on costs a training: its median step while browsers look on, open traces and save, against no tracer at all.

    python benchmarks/bench_training.py [--blocks N] [--clients N] [--saved-mb N]

The job (this script with --job) trains in blocks of steps that are, at random, watched (the hook is called and this process
loads the server) or not (neither). Three loads, each of its own: WebSocket clients that look on live; a client that opens a
trace of 96,108 nodes again and again (timeline, verdict, ops); a session being saved, over and over. TensorFlow has one
thread, so that on a machine of two cores the other is free, as the host's cores beside a GPU are.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path
from time import perf_counter

LAYERS, WIDTH, BATCH = 60, 256, 64
STEPS = 150  # a block
BIG_LAYERS = 6006  # a chain of dense layers of which one step has 96,108 nodes


# ------------------------------------------------------------------------------------------------------------------ the job


def chain(tf, layers: int, width: int):
    inputs = tf.placeholder(tf.float32, [None, width], name="inputs")
    hidden = inputs
    for layer in range(layers):
        hidden = tf.tanh(tf.matmul(hidden, tf.get_variable(f"w{layer}", [width, width])))
    loss = tf.reduce_mean(tf.square(hidden))
    train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss, global_step=tf.train.get_or_create_global_step())
    return inputs, train


def job(extra: list[str]) -> None:
    """Obeys lines of standard input, `on` or `off`: a block of steps, then a line with its median step in seconds."""
    import numpy as np
    import tensorflow

    from tftracer import TracingServer

    tf = tensorflow.compat.v1
    tf.disable_eager_execution()
    server = TracingServer(server_port=0)
    for path in extra:
        server.load_session(path)
    hook = server.hook

    class Switch(tf.train.SessionRunHook):
        watched = False

        def begin(self):
            hook.begin()

        def after_create_session(self, session, coordinator):
            hook.after_create_session(session, coordinator)

        def before_run(self, context):
            return hook.before_run(context) if self.watched else None

        def after_run(self, context, values):
            if self.watched:
                hook.after_run(context, values)

    inputs, train = chain(tf, LAYERS, WIDTH)
    feed = {inputs: np.random.default_rng(0).normal(size=(BATCH, WIDTH))}
    config = tf.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    switch = Switch()
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(config=config), hooks=[switch]) as session:
        for _ in range(STEPS):
            session.run(train, feed)
        print("URL", server.url, flush=True)
        for line in sys.stdin:
            switch.watched = line.strip() == "on"
            times = []
            for _ in range(STEPS):
                begin = perf_counter()
                session.run(train, feed)
                times.append(perf_counter() - begin)
            print("MEDIAN", statistics.median(times), flush=True)


# ---------------------------------------------------------------------------------------------------------------- the loads


class Api:
    def __init__(self, url: str) -> None:
        self.base, self.token = url.split("/?token=")

    def read(self, path: str) -> int:
        """Bytes of the answer, read in chunks and thrown away."""
        request = urllib.request.Request(self.base + path, headers={"Authorization": f"Bearer {self.token}"})
        total = 0
        with urllib.request.urlopen(request, timeout=600) as response:
            while chunk := response.read(1 << 16):
                total += len(chunk)
        return total


class Load:
    """Something that is done again and again while it is on; ``done`` counts."""

    def __init__(self, name: str) -> None:
        self.name, self.done = name, 0
        self.wanted = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def once(self) -> None:
        raise NotImplementedError

    def _run(self) -> None:
        while True:
            self.wanted.wait()
            try:
                self.once()
            except OSError:  # the job has been ended: so is the load
                return
            self.done += 1


class Opening(Load):
    def __init__(self, api: Api, trace: int) -> None:
        self.api, self.trace = api, trace
        super().__init__(f"opening a trace of {nodes_of(api, trace):,} nodes again and again")

    def once(self) -> None:
        for answer in ("timeline", "verdict", "ops"):
            if self.wanted.is_set():
                self.api.read(f"/api/traces/{self.trace}/{answer}")


class Saving(Load):
    def __init__(self, api: Api, size: int) -> None:
        self.api = api
        super().__init__(f"saving a session of {size / 1e6:,.0f} MB")

    def once(self) -> None:
        self.api.read("/api/session/file")


class Browsers(Load):
    """WebSocket clients that read what comes, in an event loop of their own."""

    def __init__(self, api: Api, count: int) -> None:
        self.api, self.count = api, count
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._connect(), self.loop).result(120)
        super().__init__(f"{count} browsers' worth of WebSocket clients (messages received)")

    async def _connect(self) -> None:
        from tornado.httpclient import HTTPRequest
        from tornado.websocket import websocket_connect

        for _ in range(self.count):
            headers = {"Authorization": f"Bearer {self.api.token}", "Origin": self.api.base}
            url = self.api.base.replace("http", "ws", 1) + "/api/live"
            await websocket_connect(HTTPRequest(url, headers=headers), on_message_callback=self._received)

    def _received(self, message: object) -> None:
        self.done += message is not None

    def _run(self) -> None:
        """Being connected is the load."""


def nodes_of(api: Api, trace: int) -> int:
    import json

    request = urllib.request.Request(f"{api.base}/api/traces/{trace}", headers={"Authorization": f"Bearer {api.token}"})
    with urllib.request.urlopen(request, timeout=600) as response:
        return int(json.load(response)["nodes"])


# ------------------------------------------------------------------------------------------------------------- the measuring


def measure(process: subprocess.Popen[str], load: Load | None, blocks: int) -> tuple[list[float], list[float]]:
    """Median steps (s) of watched blocks and of the others, in random order."""
    assert process.stdin
    assert process.stdout
    medians: dict[str, list[float]] = {"on": [], "off": []}
    order = ["on", "off"] * blocks
    random.Random(1).shuffle(order)
    for which in order:
        if load:
            load.wanted.set() if which == "on" else load.wanted.clear()
        process.stdin.write(which + "\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith("MEDIAN"):
                medians[which].append(float(line.split()[1]))
                break
    return medians["on"], medians["off"]


def start(extra: list[Path]) -> tuple[subprocess.Popen[str], Api]:
    command = [sys.executable, __file__, "--job", *map(str, extra)]
    environment = {**os.environ, "TFTRACER_SPOOL_DIR": tempfile.mkdtemp(), "TF_CPP_MIN_LOG_LEVEL": "3"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert process.stdout
    for line in process.stdout:
        if line.startswith("URL"):
            return process, Api(line.split()[1])
    raise SystemExit("the job ended before it trained")


def big_trace(folder: Path) -> Path:
    """RunMetadata of one step of 96,108 nodes or a few more or less, as TensorFlow gives it."""
    path = folder / "dense6006.pb"
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
    """Step statistics whose labels are random: each trace is one valid RunMetadata of 16 MB that zstd cannot shrink."""
    from tensorflow.core.protobuf import config_pb2

    from tftracer import TracingServer

    server = TracingServer(start_web_server_on_start=False, keep_traces=10_000, spool_dir=tempfile.mkdtemp())
    with tempfile.TemporaryDirectory() as folder:
        for number in range(max(1, megabytes // 16)):
            metadata = config_pb2.RunMetadata()
            device = metadata.step_stats.dev_stats.add(device="/job:localhost/replica:0/task:0/device:CPU:0")
            for node in range(16):
                label = os.urandom(1 << 20).decode("latin-1")[:700_000]
                device.node_stats.add(node_name=f"n{node}", all_start_micros=node + 1, all_end_rel_micros=1, timeline_label=label)
            one = Path(folder) / f"{number}.pb"
            one.write_bytes(metadata.SerializeToString())
            server.load_session(one)
            one.unlink()
    server.save_session(path)


def report(name: str, on: list[float], off: list[float]) -> None:
    watched, alone = statistics.median(on), statistics.median(off)
    spread = statistics.quantiles([b / alone for b in off], n=4)
    print(
        f"{name:70s} {alone * 1e3:8.3f} ms {watched * 1e3:8.3f} ms {watched / alone - 1:+7.2%}"
        f"   (unwatched blocks' quartiles {spread[0] - 1:+.1%} {spread[2] - 1:+.1%})",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--job", nargs="*")
    parser.add_argument("--blocks", type=int, default=15, help="of each kind")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--saved-mb", type=int, default=1000)
    options = parser.parse_args()
    if options.job is not None:
        job(options.job)
        return
    out = Path(__file__).parent / "out"
    out.mkdir(exist_ok=True)
    print(f"{'while':70s} {'no tracer':>11s} {'watched':>11s}  change", flush=True)

    process, _ = start([])
    report("the hook alone, nobody looks on", *measure(process, None, options.blocks))
    process.kill()

    process, api = start([])
    browsers = Browsers(api, options.clients)
    on, off = measure(process, browsers, options.blocks)
    report(f"{browsers.name}: {browsers.done:,}", on, off)
    process.kill()

    process, api = start([big_trace(out)])
    load: Load = Opening(api, 1)
    on, off = measure(process, load, options.blocks)
    report(f"{load.name} ({load.done} times)", on, off)
    process.kill()

    heavy = heavy_session(out, options.saved_mb)
    process, api = start([heavy])
    load = Saving(api, heavy.stat().st_size)
    on, off = measure(process, load, options.blocks)
    report(f"{load.name} ({load.done} times)", on, off)
    process.kill()


if __name__ == "__main__":
    main()
