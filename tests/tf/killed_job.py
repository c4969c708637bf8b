"""A job that traces without end, for the tests that kill it. Prints a line for each trace that is announced as done.

python killed_job.py SPOOL_FOLDER KEEP_TRACES
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tftracer.capture.hook import make_hook
from tftracer.session.live import Recorder


def announce(message: Any) -> None:
    if message["type"] == "trace" and not message["payload"]["note"]:
        os.write(1, f"DONE {message['payload']['id']} {message['payload']['bytes']}\n".encode())
    if message["type"] == "trace_removed":
        os.write(1, f"GONE {message['payload']['id']} 0\n".encode())


def main() -> None:
    tf.disable_eager_execution()
    recorder = Recorder(keep_traces=int(sys.argv[2]), spool_dir=sys.argv[1]).start()
    recorder.subscribe(announce)
    inputs = tf.placeholder(tf.float32, [None, 16], name="x")
    hidden = inputs
    for _ in range(10):
        hidden = tf.tanh(tf.matmul(hidden, tf.constant(np.eye(16, dtype=np.float32))))
    from tftracer.session.writer import writer_thread as step_writer

    step_writer.SUPERFLUOUS_BYTES, step_writer.FLUSH_S = 10_000, 0.05  # so that the file is rewritten again and again
    with tf.train.MonitoredSession(hooks=[make_hook(recorder)]) as session:
        recorder.set_trace_all(True)
        os.write(1, f"SPOOL {recorder.session()['file']} 0\n".encode())
        while True:
            session.run(hidden, {inputs: np.ones((4, 16), np.float32)})


if __name__ == "__main__":
    main()
