"""Made once, in an environment with TensorFlow 2.15 and tensorflow-tracer 1.1.0: the pickles of this folder and its numbers.

    python record.py        # needs `original.py` (the shim that lets the 2018 package import on TensorFlow 2) on the path

Writes session.pickle, session.pickle.gz, run_metadata_protocol*.pickle, and times.json: what the original's Timeline
says of the recorded RunMetadata in the folder above and of its own, in microseconds.
"""

import gzip
import json
import pickle
from pathlib import Path

import numpy as np
import original  # noqa: F401
import tensorflow as tf

from tftracer import Timeline, TracingServer

HERE = Path(__file__).parent
METHODS = ("step_time", "computation_time", "communication_time", "communication_elapsed_time")
PATTERNS = [
    (None, None),
    ("worker", None),
    ("ps", None),
    ("GPU", None),
    (None, "MatMul"),
    (None, "edge_"),
    ("CPU:0", "ReadVariableOp"),
    (None, " = HorovodAllreduce("),
]


def record_session():
    x = tf.placeholder(tf.float32, [4, 8], name="x")
    y = tf.nn.relu(tf.matmul(x, tf.get_variable("w", [8, 3])), name="y")
    loss = tf.reduce_sum(y, name="loss")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_or_create_global_step())
    server = TracingServer(start_web_server_on_start=False, keep_traces=2)
    with tf.train.MonitoredTrainingSession(hooks=[server.hook]) as session:
        for step in range(8):
            server._source.global_tracing = 3 <= step < 6
            session.run([train, loss], feed_dict={x: np.full([4, 8], step % 2, np.float32)})
            session.run(y, feed_dict={x: np.ones([4, 8], np.float32)})
    server.save_session(str(HERE / "session.pickle"))
    with gzip.open(HERE / "session.pickle.gz", "wb") as file:
        file.write(pickle.dumps(server._source))
    metadata = server._source._traces[0][-1]
    for protocol in (0, 2, 3, 4):
        with (HERE / f"run_metadata_protocol{protocol}.pickle").open("wb") as file:
            pickle.dump(metadata, file, protocol)


def record_times():
    by_arguments = {}
    for path in sorted(HERE.parent.glob("*.pb")):
        metadata = tf.RunMetadata.FromString(path.read_bytes())
        for op in (None, "MatMul"):
            timeline = Timeline(run_metadata=metadata, comm_op_name=op)
            for device, exclude in PATTERNS:
                times = {"step_time": timeline.step_time(device)}
                times.update({name: getattr(timeline, name)(device, exclude) for name in METHODS[1:]})
                by_arguments[f"{path.name}|{op}|{device}|{exclude}"] = times
    (HERE / "times.json").write_text(json.dumps(by_arguments, indent=1))


record_session()
record_times()
