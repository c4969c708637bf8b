"""Made once with TensorFlow 2.15: what ProfilerHook, FileWriter and text_format write of a small step.

    python record.py

Writes timeline-N.json (ProfilerHook), events.out.tfevents.small (FileWriter and ProfilerHook), step.pb, step.pbtxt, step.pb.gz.
"""

import gzip
import shutil
from pathlib import Path

import tensorflow as tf
from google.protobuf import text_format

v1 = tf.compat.v1
v1.disable_eager_execution()
HERE = Path(__file__).parent
SCRATCH = HERE / "scratch"


def main():
    x = v1.random_uniform([16, 16], name="x")
    y = tf.reduce_sum(tf.matmul(x, x, name="product"), name="sum")
    v1.train.get_or_create_global_step()
    hook = v1.train.ProfilerHook(save_steps=2, output_dir=str(SCRATCH), show_memory=True)
    bump = v1.assign_add(v1.train.get_global_step(), 1)
    with v1.train.MonitoredSession(hooks=[hook]) as session:
        for _ in range(3):
            session.run([y, bump])
        metadata = v1.RunMetadata()
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        session.run(y, options=options, run_metadata=metadata)
    with v1.Graph().as_default():
        writer = v1.summary.FileWriter(str(SCRATCH))
        writer.add_summary(v1.Summary(value=[v1.Summary.Value(tag="loss", simple_value=1.0)]), 1)
        writer.add_run_metadata(metadata, "step_7", 7)
        writer.add_run_metadata(metadata, "step_8", 8)
        writer.add_run_metadata(metadata, "eval", 8)
        writer.close()
    for path in SCRATCH.glob("timeline-*.json"):
        shutil.copy(path, HERE / path.name)
    (HERE / "step.pb").write_bytes(metadata.SerializeToString())
    (HERE / "step.pb.gz").write_bytes(gzip.compress(metadata.SerializeToString()))
    (HERE / "step.pbtxt").write_text(text_format.MessageToString(metadata))
    events = max(SCRATCH.glob("events.out*"), key=lambda path: path.stat().st_size)
    shutil.copy(events, HERE / "events.out.tfevents.small")
    shutil.rmtree(SCRATCH)


main()
