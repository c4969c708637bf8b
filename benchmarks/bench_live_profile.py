"""From the end of a traced step of ResNet50's ``fit`` to its painted timeline in Chromium, while the training goes on.

As bench_live_page.py, whose page and clicks it takes; the step is a profile (XSpace) with the definition of its function.

    python benchmarks/bench_live_profile.py [TF...]        # environments: tf221 tf215
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

from bench_live_page import OPENS, ROOT, Api, ends_with_input, nodes_of, once, training

TIMES = 5
PIXELS, BATCH = 64, 8


def train() -> None:
    import numpy as np
    import tensorflow as tf

    from tftracer import TracingServer

    server = TracingServer(server_port=0, spool_dir=tempfile.mkdtemp(), keep_traces=1000)
    stop = ends_with_input()

    def batches() -> Iterator[Any]:
        print(server.url, flush=True)
        while not stop.is_set():
            yield images, labels

    images = np.random.default_rng(1).random((BATCH, PIXELS, PIXELS, 3), np.float32)
    labels = np.arange(BATCH, dtype=np.int32)
    shapes = (tf.TensorSpec(images.shape, tf.float32), tf.TensorSpec(labels.shape, tf.int32))
    model = tf.keras.applications.ResNet50(weights=None, input_shape=(PIXELS, PIXELS, 3), classes=10)
    model.compile("sgd", "sparse_categorical_crossentropy")
    model.fit(tf.data.Dataset.from_generator(batches, output_signature=shapes), verbose=0)


def measure(environment: str) -> None:
    from bench_page import browser

    with training(str(ROOT / ".envs" / environment / "bin/python"), __file__, "--train") as url, browser() as opened:
        page = opened.new_page(viewport={"width": 1400, "height": 860})
        page.add_init_script(OPENS)
        page.goto(url)
        page.locator("button", has_text="Trace next step").first.wait_for(timeout=300_000)  # ResNet50 takes its time to be built
        api = Api(url)
        times = [once(page, url, api) for _ in range(TIMES)]
        nodes = nodes_of(times[-1][0], api)
    clicked, painted = (sorted(one[i] for one in times) for i in (1, 2))
    print(
        f"{environment}: {nodes:,} nodes; row there after {statistics.median(clicked):.0f} ms, painted after "
        f"{statistics.median(painted):.0f} ms ({painted[0]:.0f} to {painted[-1]:.0f} of {TIMES})",
        flush=True,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train()
    else:
        for name in sys.argv[1:] or ["tf221", "tf215"]:
            measure(name)
