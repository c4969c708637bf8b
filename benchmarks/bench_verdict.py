"""How many headlines are right for steps whose bound was planted (planted_bounds.py).

    python benchmarks/bench_verdict.py FOLDER [--planted NAME ...] [--ways session function fit] [--busy N]   # records
    python benchmarks/bench_verdict.py FOLDER --judge                                  # judges what lies there; no TensorFlow

A headline is right if it is of a code that names the planted bound and says its name; partly right if it is of another code
that holds, too; unsaid if it names no bound, or what held up this step alone; else false. ``--busy``: so many other processes
compute meanwhile. One session file per step and way.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

TRACES = 5
UNTRACED = 12
MAX_S = 120  # for one recording


def record(folder: Path, names: list[str], ways: list[str], busy: int) -> None:
    """Each bound in a process of its own."""
    from planted_bounds import PLANTED

    for name in names or list(PLANTED):
        command = [sys.executable, __file__, str(folder), "--here", "--planted", name, "--ways", *ways, "--busy", str(busy)]
        try:
            subprocess.run(command, check=True, timeout=MAX_S, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            print(f"{name} was not recorded whole: {(error.stderr or b'')[-500:].decode()}", flush=True)


def record_here(folder: Path, name: str, ways: list[str], busy: int) -> None:
    import tensorflow as tf
    from planted_bounds import PLANTED
    from record_compute_steps import other_processes

    planted, version = PLANTED[name], ".".join(tf.__version__.split(".")[:2])
    truth = {"truth": planted.truth.split(), "also": planted.also.split(), "names": planted.names}
    for way in [way for way in ways if way in planted.ways]:
        path = folder / f"{name}-{way}-{version}-{'busy' if busy else 'quiet'}.tftrace"
        with other_processes(busy):
            record_one(planted, way, path)
        path.with_suffix(".json").write_text(json.dumps(truth))


def record_one(planted: Any, way: str, path: Path) -> None:
    from tftracer import TracingServer

    with tempfile.TemporaryDirectory() as spool:
        server = TracingServer(server_port=0, start_web_server_on_start=False, spool_dir=spool, keep_traces=100)
        try:
            {"session": run_session, "function": run_function, "fit": run_fit}[way](planted, server)
            server.save_session(str(path))
        finally:
            server.stop_web_server()


def steps_of(planted: Any, server: Any, run: Any) -> None:
    for number in range(UNTRACED + 2 * TRACES):
        if number == UNTRACED:
            server.trace_next(steps=TRACES)
        if planted.between is not None:
            planted.between()
        run()


def run_session(planted: Any, server: Any) -> None:
    import tensorflow as tf

    v1 = tf.compat.v1
    with tf.Graph().as_default():
        fed, batch = {}, None
        if planted.data is not None:
            batch = v1.data.make_one_shot_iterator(planted.data()).get_next()
        elif planted.array is not None:
            array = planted.array()
            batch = v1.placeholder(tf.as_dtype(array.dtype) if array.dtype.kind == "f" else tf.string, array.shape)
            fed = {batch: array}
        fetch = planted.step(batch, planted.variables())
        with v1.train.MonitoredSession(hooks=[server.hook]) as session:
            steps_of(planted, server, lambda: session.run(fetch, fed))


def run_function(planted: Any, server: Any) -> None:
    import tensorflow as tf

    variables = planted.variables()
    array = planted.array() if planted.array is not None else None
    if planted.data is not None:
        iterator = iter(planted.data())
        step = tf.function(lambda: planted.step(next(iterator), variables))
    elif array is not None:
        signature = tf.TensorSpec(array.shape, tf.as_dtype(array.dtype) if array.dtype.kind == "f" else tf.string)
        function = tf.function(lambda batch: planted.step(batch, variables), input_signature=[signature])
        steps_of(planted, server, lambda: function(array))
        return
    else:
        step = tf.function(lambda: planted.step(None, variables), jit_compile=planted.jit or None)
    steps_of(planted, server, step)


def run_fit(planted: Any, server: Any) -> None:
    import tensorflow as tf

    variables = planted.variables()

    class Model(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.layer = tf.keras.layers.Dense(1)

        def call(self, x: Any) -> Any:
            return self.layer(x[:1, None] * 1.0)

        def train_step(self, data: Any) -> Any:
            return {"loss": planted.step(data, variables)}

    class Between(tf.keras.callbacks.Callback):
        def __init__(self) -> None:
            super().__init__()
            self.seen = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.seen += 1
            if self.seen == UNTRACED:
                server.trace_next(steps=TRACES)
            if planted.between is not None:
                planted.between()

    model = Model()
    model.compile(optimizer="sgd", jit_compile=False)
    model.fit(planted.data(), steps_per_epoch=UNTRACED + 2 * TRACES, epochs=1, verbose=0, callbacks=[Between()])


# ---------------------------------------------------------------------------------------------------------------- judging


def judge(folder: Path, pattern: str, detail: bool) -> None:
    counts: Counter[str] = Counter()
    for path in sorted(folder.glob("*.tftrace")):
        if not re.search(pattern, path.name):
            continue
        truth = json.loads(path.with_suffix(".json").read_text())
        for step, sentences in headlines(path):
            result = judged(truth, sentences)
            counts[result] += 1
            if result != "right" or detail:
                print(f"{result:6} {path.stem} step {step}: [{sentences[0]['code']}] {sentences[0]['text']}")
                for sentence in sentences[1:] if detail else []:
                    print(f"          [{sentence['code']} {sentence['share']:.2f}] {sentence['text']}")
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())), f"of {sum(counts.values())}")


def judged(truth: dict[str, Any], sentences: list[Any]) -> str:
    first = sentences[0]
    if first["code"] in truth["truth"] and re.search(truth["names"], first["text"] + first["advice"]):
        return "right"
    if first["code"] == "balanced" or "usual_ns" in first["numbers"] or "only_here" in first["numbers"]:
        return "unsaid"  # of what each step is bound by; what it says of this one may be true
    return "partly" if first["code"] in truth["also"] else "false"


def headlines(path: Path) -> list[tuple[int, list[Any]]]:
    """(step, sentences) of each trace."""
    from tftracer.session.files.saved import open_session
    from tftracer.session.traces.other_traces import OtherTraces
    from tftracer.trace.answers import Answers

    saved, known = open_session(path), {}

    def answers(number: int) -> Any:
        if number not in known:
            known[number] = Answers(saved.trace_bytes(number), saved.trace_context(number))
        return known[number]

    others = OtherTraces(saved, answers)
    records = [record for run in saved.runs() for record in run["traces"]]
    return [
        (record["step"], answers(record["id"]).verdict(other_traces=others.of(record["id"], "verdict"))["sentences"])
        for record in records
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--planted", nargs="+", default=[])
    parser.add_argument("--ways", nargs="+", default=["session", "function", "fit"])
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="in this process")
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--pattern", default="", help="of the files to judge")
    parser.add_argument("--detail", action="store_true")
    options = parser.parse_args()
    if options.judge:
        judge(options.folder, options.pattern, options.detail)
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.here:
        record_here(options.folder, options.planted[0], options.ways, options.busy)
        return
    record(options.folder, options.planted, options.ways, options.busy)


if __name__ == "__main__":
    main()
