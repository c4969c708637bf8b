"""From the end of a traced step to its painted timeline in Chromium, in a live training, beside the original's page of it.

The page stands on the overview; *Trace next step* is pressed; the row that appears is clicked by a script as soon as it is there.
From that click on a hand would take longer than all the rest. The step's end is what the tracer recorded of it; the machine's
clock and the browser's are the same. The original's figure is bench_page.py's, ``visualize()`` and the first plot: on a machine
where nothing else runs, and beside the same training, as ours always is (in a process of its own: in its users' scripts
it shares the training's interpreter as well).

    python benchmarks/bench_live_page.py [LAYERS...]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LAYERS = (100, 500)  # some 1,600 and 8,000 nodes
TIMES = 7
ROOT = Path(__file__).resolve().parent.parent
TRAINING = ROOT / ".envs/tf215/bin/python"
#: Opens a row as soon as it is there; the newest is the first, and the list shows no more than some.
OPENS = """(() => {
  window.waiting = false;
  window.newest = () => document.querySelector("a.open[href*='traces/']");
  new MutationObserver(() => {
    if (!waiting || !newest() || newest().href === known) return;
    waiting = false; window.clickedAt = performance.now(); newest().click();
  }).observe(document, { childList: true, subtree: true });
})()"""
#: Presses the button and waits for the picture. Asking for it again and again would take the processor that it needs.
PRESSES = """async () => {
  window.known = newest()?.href; waiting = true;
  const painted = new Promise((done) => new PerformanceObserver((list) => {
    const [mark] = list.getEntriesByName('tftracer:painted');
    if (mark) done(mark);
  }).observe({ type: 'mark' }));
  [...document.querySelectorAll('button')].find((b) => b.textContent.includes('Trace next step')).click();
  const mark = await painted, { timeOrigin } = performance;
  return { painted: timeOrigin + mark.startTime, clicked: timeOrigin + clickedAt, trace: mark.detail };
}"""


def train(layers: int) -> None:
    """Says its URL and trains until its standard input closes; the first run is the training's."""
    import tensorflow.compat.v1 as tf

    from tftracer import TracingServer

    tf.disable_eager_execution()
    hidden = inputs = tf.ones([8, 32])
    for layer in range(layers):
        weights, bias = tf.get_variable(f"w{layer}", [32, 32]), tf.get_variable(f"b{layer}", [32])
        hidden = tf.tanh(tf.matmul(hidden, weights) + bias)
    loss = tf.reduce_mean(tf.square(hidden - inputs))
    step = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss, global_step=tf.train.get_or_create_global_step())
    server = TracingServer(server_port=0, spool_dir=tempfile.mkdtemp(), keep_traces=1000)
    print(server.url, flush=True)
    stop = ends_with_input()
    with tf.train.MonitoredTrainingSession(hooks=[server.hook]) as session:
        while not stop.wait(0.02):  # two cores are shared with a browser
            session.run(step)


def ends_with_input() -> threading.Event:
    """Set when the standard input closes."""
    stop = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=listen, daemon=True).start()
    return stop


@contextmanager
def training(*command: str) -> Iterator[str]:
    """A training that says its URL first and ends with its standard input."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin and process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.terminate()


class Api:
    def __init__(self, url: str) -> None:
        self.base, _, self.token = url.partition("?token=")

    def read(self, path: str) -> bytes:
        request = urllib.request.Request(f"{self.base}api/{path}", headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request) as answer:
            return bytes(answer.read())


def once(page: Any, url: str, api: Api) -> tuple[int, float, float]:
    """Trace, milliseconds from the step's end to the click and to the painted timeline."""
    page.goto(url.partition("?")[0])
    page.locator("button", has_text="Trace next step").first.wait_for()
    page.wait_for_timeout(1500)  # a reader who finds the button takes longer
    presses = page.evaluate(PRESSES)
    record = json.loads(api.read(f"traces/{presses['trace']}"))
    ended = (record["started_at"] + record["duration_s"]) * 1e3
    return presses["trace"], presses["clicked"] - ended, presses["painted"] - ended


def nodes_of(trace: int, api: Api) -> int:
    """Known some time after the trace came."""
    while True:
        nodes: int = json.loads(api.read(f"traces/{trace}"))["nodes"]
        if nodes:
            return nodes
        time.sleep(0.1)  # the training has the processor meanwhile


def measure(layers: int, folder: Path) -> None:
    from bench_page import TIMEOUT_S, browser

    raw = folder / f"{layers}.pb"
    with training(str(TRAINING), __file__, "--train", str(layers)) as url:
        with browser() as opened:
            page = opened.new_page(viewport={"width": 1400, "height": 860})
            page.set_default_timeout(TIMEOUT_S * 1000)
            page.add_init_script(OPENS)
            page.goto(url)
            api = Api(url)
            times = [once(page, url, api) for _ in range(TIMES)]
            nodes = nodes_of(times[-1][0], api)
            raw.write_bytes(api.read(f"traces/{times[-1][0]}/file?format=run_metadata"))
        beside = original_ms(nodes, raw, folder)
    alone = original_ms(nodes, raw, folder)
    clicked, painted = (sorted(one[i] for one in times) for i in (1, 2))
    middle = statistics.median(painted)
    print(
        f"{nodes:>8,} {statistics.median(clicked):>10.0f} ms {middle:>8.0f} ms ({painted[0]:.0f} to {painted[-1]:.0f}) "
        f"{alone:>8.0f} ms   1/{alone / middle:.1f}   {beside:>8.0f} ms   1/{beside / middle:.1f}",
        flush=True,
    )


def original_ms(nodes: int, raw: Path, folder: Path) -> float:
    """The better of two."""
    from bench_page import originals

    return min(originals(nodes, raw, folder).seconds for _ in range(2)) * 1e3


def main(layers: list[int]) -> None:
    print(f"{'':>57} {'original, alone':>21}   {'beside the training':>21}")
    print(f"{'nodes':>8} {'row is there':>13} {'painted':>11} {'of ' + str(TIMES):>12}")
    with tempfile.TemporaryDirectory() as folder:
        for count in layers:
            measure(count, Path(folder))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train(int(sys.argv[2]))
    else:
        main([int(argument) for argument in sys.argv[1:]] or list(LAYERS))
