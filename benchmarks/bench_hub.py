"""1,000 simulated processes on one hub: how soon its page shows them, what they cost it, how soon a request reaches them all.

    python benchmarks/bench_hub.py [PROCESSES]

The hub is a TracingServer in a process of its own, in which a small training loop runs; the simulated processes share this
one, which gives way to the hub (nice 19), and speak the real protocol over sockets of their own. No TensorFlow.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import asdict
from pathlib import Path
from urllib.parse import urlsplit

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from tftracer.job.wire import protocol
from tftracer.job.wire.handshake import Endpoint, Greeting, Keys, new_nonce
from tftracer.web.credentials import agent_credential

TOKEN, JOB = "bench", "bench"
MEASURE_S = 20.0
#: The training is timed in pairs of blocks, one with the processes' beats and one without, in either order.
PAIRS, SETTLE_S, BLOCK_S = 30, 0.2, 0.6


def hub(folder: str) -> None:
    """The hub's process: serves, trains on one thread, and says how long its steps took whenever it is asked to."""
    os.environ.update(TFTRACER_JOB=JOB, HOROVOD_RANK="0", HOROVOD_SIZE="1000", TFTRACER_HUB_DIR=folder)
    import numpy as np

    from tftracer.server import TracingServer

    server = TracingServer(server_port=0, token=TOKEN, spool_dir=folder)
    print(server.url, flush=True)
    took, burnt = [], [0.0]
    matrix = np.ones((500, 500), np.float32)

    def train() -> None:
        while True:
            begin = time.perf_counter()
            matrix @ matrix
            took.append(time.perf_counter() - begin)
            burnt[0] = time.thread_time()
            time.sleep(0.005)

    threading.Thread(target=train, daemon=True).start()
    for _ in sys.stdin:
        steps = took[:]
        took.clear()
        print(statistics.median(steps or [0.0]), statistics.fmean(steps or [0.0]), burnt[0], flush=True)


class Simulated:
    """One process of the job."""

    speak = asyncio.Event()  # while it is not set all of them say nothing, so that a training can be timed without them

    def __init__(self, number: int, url: str, asked: list[float]) -> None:
        self.number, self.url, self.asked = number, url, asked
        self.interval_s, self.steps = 1.0, 0

    def state(self) -> protocol.Message:
        place = {"rank": self.number, "size": 1000, "local_rank": 0, "role": "worker", "task": None, "launcher": "horovod"}
        common = {
            "id": f"simulated{self.number}",
            "title": f"rank {self.number}",
            "host": f"node{self.number}",
            "pid": self.number,
        }
        return {**common, "place": place, "steps": self.steps, "steps_per_s": 10.0, "mean_s": 0.1, "traces": 0, "problem": ""}

    async def join(self) -> None:
        address = self.url.replace("http", "ws", 1) + "api/job/agents"
        self.connection = await websocket_connect(
            HTTPRequest(address, headers={"Authorization": f"tftracer-agent {agent_credential(TOKEN, new_nonce())}"})
        )
        hello, mine = protocol.unpack(await self.connection.read_message()), new_nonce()
        here = urlsplit(self.url).netloc
        endpoint = Endpoint(here, here)
        keys = Keys(TOKEN, Greeting(JOB, hello["id"], hello["nonce"], mine, endpoint))
        join = protocol.pack("join", job=JOB, nonce=mine, proof=keys.proof("agent"), **asdict(endpoint))
        await self.connection.write_message(join, binary=True)
        assert protocol.unpack(await self.connection.read_message())["t"] == "welcome"
        self.channel = keys.channel("agent")
        await self.send("beat", process=self.state())

    async def send(self, kind: str, **fields: object) -> None:
        await self.connection.write_message(self.channel.seal(protocol.pack(kind, **fields)), binary=True)

    async def beat(self) -> None:
        await asyncio.sleep(self.number % 100 / 100 * self.interval_s)
        while True:
            await Simulated.speak.wait()
            self.steps += int(10 * self.interval_s)
            await self.send("beat", steps=self.steps, steps_per_s=10.0, mean_s=0.1, traces=0, problem="")
            await asyncio.sleep(self.interval_s)

    async def hear(self) -> None:
        while (data := await self.connection.read_message()) is not None:
            message = protocol.unpack(self.channel.open(data))
            if message["t"] == "pace":
                self.interval_s = message["interval_s"]
            elif message["t"] == "prepare":
                medians = {"run_title": "train", "begun": self.steps + 1, "steps_per_s": 10.0, "servers": ""}
                await self.send("steps", job_trace=message["job_trace"], **medians)
            elif message["t"] == "trace":
                self.asked.append(time.perf_counter())
                await self.send("armed", job_trace=message["job_trace"])


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def page(url: str, times: dict[str, float], wanted: int) -> None:
    """The hub's page: notes when it shows all."""
    connection = await websocket_connect(
        HTTPRequest(url.replace("http", "ws", 1) + "api/live", headers={"Authorization": f"Bearer {TOKEN}"}),
        max_message_size=1 << 26,
    )
    while (data := await connection.read_message()) is not None:
        message = json.loads(data)
        if message["type"] == "job" or message["type"] == "job_changes":
            times["updates"] = times.get("updates", 0) + 1
            if len(message["payload"]["processes"]) >= wanted:
                times.setdefault("all", time.perf_counter())


def ask_all(url: str) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    urllib.request.urlopen(urllib.request.Request(url + "api/job/trace", b"{}", headers)).read()


async def bench(process: subprocess.Popen[str], count: int) -> None:
    assert process.stdin is not None and process.stdout is not None
    url = (await asyncio.to_thread(process.stdout.readline)).partition("?")[0]

    async def state() -> tuple[float, float, float]:
        """The median and the mean step since the last look, and the processor time of all steps so far."""
        process.stdin.write("\n")
        process.stdin.flush()
        median, mean, burnt = (await asyncio.to_thread(process.stdout.readline)).split()
        return float(median), float(mean), float(burnt)

    async def block(speak: bool) -> tuple[float, float]:
        """The median and the mean step of a short while."""
        (Simulated.speak.set if speak else Simulated.speak.clear)()
        await asyncio.sleep(SETTLE_S)
        await state()
        await asyncio.sleep(BLOCK_S)
        return (await state())[:2]

    async def beside() -> tuple[float, float]:
        """A step's median and mean with beats over those without: the median of all pairs of blocks."""
        medians, means = [], []
        for _ in range(PAIRS):
            blocks = {speak: await block(speak) for speak in random.sample([True, False], 2)}
            medians.append(blocks[True][0] / blocks[False][0])
            means.append(blocks[True][1] / blocks[False][1])
        Simulated.speak.set()
        return statistics.median(medians), statistics.median(means)

    async def burnt() -> float:
        """Of a core, without the training's own share."""
        before, training = cpu_s(process.pid), (await state())[2]
        await asyncio.sleep(MEASURE_S)
        after, trained = cpu_s(process.pid), (await state())[2]
        return (after - before - (trained - training)) / MEASURE_S

    Simulated.speak.set()
    asked: list[float] = []
    simulated = [Simulated(i + 1, url, asked) for i in range(count)]
    results: dict[str, float] = {}
    tasks = [asyncio.ensure_future(page(url, results, count + 1))]
    for first in range(0, count, 50):
        await asyncio.gather(*(one.join() for one in simulated[first : first + 50]))
    joined = time.perf_counter()
    for one in simulated:
        tasks += [asyncio.ensure_future(one.hear()), asyncio.ensure_future(one.beat())]
    while "all" not in results:
        await asyncio.sleep(0.01)
    await asyncio.sleep(18)  # the pace of 1,000 is everybody's now
    updates = results["updates"]
    cost = await burnt()
    updated = results["updates"] - updates
    median, mean = await beside()
    begin = time.perf_counter()
    await asyncio.to_thread(ask_all, url)
    while len(asked) < count:
        await asyncio.sleep(0.01)
    print(f"{count} simulated processes on one hub, a page looking on")
    print(f"  shown after the last had joined: {max(0.0, results['all'] - joined):.2f} s (at most 1 s)")
    print(f"  updates of the page: {updated / MEASURE_S:.1f} a second")
    print(f"  the hub's own cost: {100 * cost:.1f} % of a core (at most 5 %)")
    print(f"  trace on all reached the last after: {max(asked) - begin:.2f} s (at most 1 s)")
    print(f"  a training step beside it: {median:.3f} (median), {mean:.3f} (mean) of one while they say nothing (at most 1.02)")
    for task in tasks:
        task.cancel()


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        arguments = [sys.executable, __file__, "--hub", folder]
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # so that its training's time is known
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=one_thread)
        os.nice(19)
        try:
            asyncio.run(bench(process, count))
        finally:
            process.kill()
            process.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--hub"]:
        hub(sys.argv[2])
    else:
        main()
