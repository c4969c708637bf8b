"""Records steps that compute nearly all the time: some made slow by one thing, others balanced (compute_steps.py).

    python benchmarks/record_compute_steps.py FOLDER --set 1 [--kinds float64 ...]

Thresholds of the verdict were chosen on set 1 and are checked on set 2, whose models are larger. Each kind becomes one file,
``KIND_SET_VERSION.xz``: msgpack of the traces as tftracer's hook recorded them, with what is known around each step. Of the
RunMetadata these are left out: memory, allocations, times in microseconds (there are nanoseconds), when ops began in their nodes.
Half of a set's traces are of TensorFlow 2.15, half of 2.21: run it with both. ``others_s`` of a trace: CPU seconds of all other
processes per second of the recording: of the tracer's own, which analyses the traces, and of what nobody meant to run.
"""

from __future__ import annotations

import argparse
import contextlib
import lzma
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgpack

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf
from compute_steps import KINDS, Kind

from tftracer import TracingServer
from tftracer.session.files.saved import open_session

v1 = tf.compat.v1
UNTRACED = 8
SPIN = "while True: pass"
LEFT_OUT = ["memory", "memory_stats", "all_start_micros", "all_end_rel_micros", "scheduled_micros"]
LEFT_OUT += [f"op_{which}_rel_{unit}" for which in ("start", "end") for unit in ("micros", "nanos")]


def busy_s() -> float:
    """CPU seconds of all processes since the machine started."""
    user, nice, system, *_ = (int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def other_processes(count: int) -> Iterator[None]:
    """They are nobody's children: those of this process would be its own work."""
    start = f"{sys.executable} -c '{SPIN}' >/dev/null 2>&1 & echo $!"
    spinning = [int(subprocess.check_output(["sh", "-c", start])) for _ in range(count)]
    try:
        yield
    finally:
        for process in spinning:
            os.kill(process, signal.SIGKILL)


def shortened(raw: bytes) -> bytes:
    metadata = v1.RunMetadata.FromString(raw)
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            for field in LEFT_OUT:
                node.ClearField(field)
            for output in node.output:
                output.tensor_description.ClearField("allocation_description")
    return metadata.SerializeToString()


def train(kind: Kind, scale: int, traces: int, folder: str) -> dict[str, Any]:
    """Some steps, and then the traced ones; what the session has recorded of them."""
    server = TracingServer(server_port=0, start_web_server_on_start=False, spool_dir=folder, keep_traces=100)
    with tf.Graph().as_default(), other_processes(kind.others):
        train_op, fed = kind.build(scale)
        with v1.train.MonitoredSession(hooks=[server.hook]) as session:
            for _ in range(UNTRACED):
                session.run(train_op, fed)
            began, busy, own = time.perf_counter(), busy_s(), time.process_time()
            server.trace_next(steps=traces)
            for _ in range(traces):
                session.run(train_op, fed)
            others = busy_s() - busy - (time.process_time() - own)
            others_s = round(max(0.0, others) / (time.perf_counter() - began), 2)
    path = str(Path(folder) / "session.tftrace")
    server.save_session(path)
    server.stop_web_server()
    saved = open_session(path)
    ids = [record["id"] for run in saved.runs() for record in run["traces"]]
    if len(ids) != traces:
        raise SystemExit(f"{traces - len(ids)} traces are missing: the disk did not keep up. Record this kind again.")
    recorded = [{"context": asdict(saved.trace_context(i)), "raw": shortened(saved.trace_bytes(i))} for i in ids]
    return {"tensorflow": tf.__version__, "others_s": others_s, "traces": recorded}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", type=int, choices=(1, 2), required=True)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    if not options.here:
        for kind in options.kinds:
            command = [sys.executable, __file__, str(options.folder), "--set", str(options.set), "--kinds", kind, "--here"]
            subprocess.run(command, check=True, env={**os.environ, **KINDS[kind].environment})
        return
    v1.disable_eager_execution()
    version = ".".join(tf.__version__.split(".")[:2])
    first_half = version != "2.15"
    for name in options.kinds:
        kind = KINDS[name]
        half = kind.traces // 2 if first_half else kind.traces - kind.traces // 2
        with tempfile.TemporaryDirectory() as folder:
            recorded = train(kind, options.set, half, folder)
        path = options.folder / f"{name}_{options.set}_tf{version}.xz"
        path.write_bytes(lzma.compress(msgpack.packb(recorded), preset=9 | lzma.PRESET_EXTREME))
        steps = [f"{each['context']['step_s'] * 1e3:.0f}" for each in recorded["traces"]]
        print(
            f"{path.name}: {path.stat().st_size:,} bytes, others {recorded['others_s']} s/s, steps of {' '.join(steps)} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
