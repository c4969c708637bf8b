"""What strangers who flood the port cost a training: its median step during the flood, against the same training without it.

    python benchmarks/bench_flood.py [--pairs N] [--steps N] [--clients N] [--only NAME]

The job is that of bench_training.py, its hook on all the time. Windows without a flood, with it at the training, and with the
same flood at a server in another process come in turns, in an order by chance. Of each turn the medians are divided, and the
medians of these ratios are told, with their intervals. What the clients take of a machine of few cores shows where they
flood another process; the last column is the ratio beyond that. The budget: at most 1.1.

    python benchmarks/bench_flood.py --only hoard --clients 300 --files 256

does so where the training, and the other process, may have 256 files open (``ulimit -n``).

Four floods, each of so many clients on this machine at once, that end by themselves: requests without the token, one
connection after another; connections that say nothing; requests whose sender does not wait for the answer. Beside the first, a
browser that has the cookie asks again and again on new connections, and how long its answers take is told.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

from bench_training import block, interval, line_of, start, tell

LONGEST_S = 600.0  # no flood outlives this
SILENCE_S = 0.5  # how long one that says nothing stays
FLOODS = {
    "refused": "requests without the token",
    "silent": "connections that say nothing",
    "hasty": "requests whose sender does not wait",
    "hoard": "connections of two addresses that stay open",
}


# ------------------------------------------------------------------------------------------------------------ the strangers


class Flood:
    def __init__(self, kind: str, port: int, clients: int) -> None:
        self.once = {"refused": self.refused, "silent": self.silent, "hasty": self.hasty, "hoard": self.hoard}[kind]
        self.port, self.clients, self.done = port, clients, 0
        self.tasks: list[asyncio.Task[None]] = []

    def switch(self, on: bool) -> None:
        for task in self.tasks:
            task.cancel()
        self.tasks = [asyncio.ensure_future(self.run()) for _ in range(self.clients)] if on else []

    async def run(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                address = (f"127.0.0.{2 + self.done % 2}", 0)
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=address)
                try:
                    await self.once(reader, writer)
                    self.done += 1
                finally:
                    writer.close()

    def ask(self, writer: asyncio.StreamWriter) -> None:
        writer.write(f"GET /api/session HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())

    async def refused(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.ask(writer)
        await reader.read(1 << 16)

    async def silent(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(reader.read(1), SILENCE_S)

    async def hoard(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until the server closes it."""
        writer.write(b"GET")
        await reader.read(1)

    async def hasty(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.ask(writer)
        await writer.drain()


def flood(kind: str, port: int, clients: int) -> None:
    """Obeys `on`, `off` and `count`; the end of its input, or ``LONGEST_S``, ends it."""
    asyncio.run(asyncio.wait_for(obey(Flood(kind, port, clients)), LONGEST_S))


async def obey(strangers: Flood) -> None:
    loop, lines = asyncio.get_running_loop(), asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    print("READY", flush=True)
    while line := (await lines.readline()).decode().strip():
        if line == "count":
            print("COUNT", strangers.done, flush=True)
        else:
            strangers.switch(line == "on")


def other() -> None:
    """A server in a process that does not train."""
    from tftracer import TracingServer

    server = TracingServer(server_port=0)
    print("URL", server.url, flush=True)
    sys.stdin.read()


def browser(url: str) -> None:
    """Obeys `on` and `off`; after `off` it tells how long its requests took, in seconds. Each is a connection of its own."""
    os.nice(19)
    import threading
    import urllib.request

    base, _, token = url.partition("/?token=")
    wanted, times = threading.Event(), []

    def ask() -> None:
        request = urllib.request.Request(f"{base}/api/session", headers={"Authorization": f"Bearer {token}"})
        while wanted.wait():
            begin = time.perf_counter()
            with urllib.request.urlopen(request, timeout=60) as response:
                response.read()
            times.append(time.perf_counter() - begin)
            time.sleep(0.2)

    threading.Thread(target=ask, daemon=True).start()
    print("READY", flush=True)
    for line in sys.stdin:
        if line.strip() == "on":
            wanted.set()
        else:
            wanted.clear()
            print("TOOK", *times, flush=True)


# ------------------------------------------------------------------------------------------------------------- the measuring


@contextlib.contextmanager
def helper(word: str, *arguments: object) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """This script in another role, and what it says first."""
    process = subprocess.Popen(
        [sys.executable, __file__, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process, line_of(process, word)
    finally:
        process.kill()
        process.wait()


def turns(
    training: subprocess.Popen[str], floods: dict[str, subprocess.Popen[str]], pairs: int, steps: int
) -> dict[str, list[float]]:
    """The median step of each window: without a flood (""), and with each of them."""
    medians: dict[str, list[float]] = {which: [] for which in ("", *floods)}
    chance = random.Random(1)
    for _ in range(pairs):
        for which in chance.sample(list(medians), len(medians)):
            if which:
                tell(floods[which], "on")
            medians[which].append(block(training, None, "on", steps).median_s)
            if which:
                tell(floods[which], "off")
    return medians


def shown(medians: list[float], against: list[float], strangers: subprocess.Popen[str] | None = None) -> str:
    middle, low, high = interval([one / other for one, other in zip(medians, against)])
    count = ""
    if strangers is not None:
        tell(strangers, "count")
        count = f"; {int(line_of(strangers, 'COUNT')[0]):,}"
    return f"{middle:5.2f} ({low:.2f} to {high:.2f}{count})"


@contextlib.contextmanager
def file_limit(files: int | None) -> Iterator[None]:
    """For the processes that are started meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files or before[0], before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def row(kind: str, options: argparse.Namespace) -> None:
    with file_limit(options.files):
        training, url = start([])
    try:
        with contextlib.ExitStack() as stack:
            with file_limit(options.files):
                _, (elsewhere,) = stack.enter_context(helper("URL", "--other"))
            ports = {"here": urlsplit(url).port, "elsewhere": urlsplit(elsewhere).port}
            start_flood = [helper("READY", "--flood", kind, port, options.clients) for port in ports.values()]
            floods = dict(zip(ports, (stack.enter_context(one)[0] for one in start_flood)))
            medians = turns(training, floods, options.pairs, options.steps)
            texts = [shown(medians[name], medians[""], strangers) for name, strangers in floods.items()]
            beyond = shown(medians["here"], medians["elsewhere"])
        waits = waits_of_browser(url, options) if kind == "refused" else ""
        print(f"{FLOODS[kind]:40s} {texts[0]:36s} {texts[1]:36s} {beyond} {waits}", flush=True)
    finally:
        training.kill()
        training.wait()


def waits_of_browser(url: str, options: argparse.Namespace) -> str:
    flooding = helper("READY", "--flood", "refused", urlsplit(url).port, options.clients)
    with helper("READY", "--browser", url) as (asking, _), flooding as (strangers, _):
        tell(strangers, "on")
        tell(asking, "on")
        time.sleep(10)
        tell(asking, "off")
        took = [float(word) for word in line_of(asking, "TOOK")]
    return f"a browser's {len(took)} answers: median {statistics.median(took) * 1e3:.0f} ms, longest {max(took) * 1e3:.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flood", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--browser", help=argparse.SUPPRESS)
    parser.add_argument("--other", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=FLOODS)
    parser.add_argument("--pairs", type=int, default=60, help="turns of three windows")
    parser.add_argument("--steps", type=int, default=100, help="of a window")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--files", type=int, help="the limit on open files of both servers' processes")
    options = parser.parse_args()
    if options.flood:
        flood(options.flood[0], int(options.flood[1]), int(options.flood[2]))
    elif options.browser:
        browser(options.browser)
    elif options.other:
        other()
    else:
        print(f"{f'{options.clients} strangers':40s} {'at the training':36s} {'at another process':36s} beyond it", flush=True)
        for kind in FLOODS:
            if options.only in (None, kind):
                row(kind, options)


if __name__ == "__main__":
    main()
