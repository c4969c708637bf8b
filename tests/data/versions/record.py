"""Samples of each version of the session file, and what they show. Made once a version, never changed after its release.

    python tests/data/versions/record.py              # in an environment with TensorFlow and the tftracer of that version
    python tests/data/versions/record.py stalls       # one with slow steps, since version 2; without TensorFlow

Writes VERSION-spool.tftrace (as a killed job leaves it), VERSION-saved.tftrace and VERSION.json, which both files show;
with stalls, VERSION-stalls-spool.tftrace and so on.
"""

import json
import sys
import tempfile
from pathlib import Path

from tftracer import TracingServer
from tftracer.session.files.saved import open_session
from tftracer.session.live import Recorder
from tftracer.storage.tftrace_format import VERSION

HERE = Path(__file__).parent
sys.path += [str(HERE.parents[1]), str(HERE.parents[1] / "session")]
from made_stalls import record_slow_steps  # noqa: E402 (beside the other tests)
from test_saved import shown  # noqa: E402


def training():
    import numpy as np
    import tensorflow.compat.v1 as tf

    tf.disable_eager_execution()
    x = tf.placeholder(tf.float32, [4, 8], name="x")
    y = tf.nn.relu(tf.matmul(x, tf.get_variable("w", [8, 3])), name="y")
    loss = tf.reduce_sum(y, name="loss")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_or_create_global_step())
    with tempfile.TemporaryDirectory() as folder:
        server = TracingServer(start_web_server_on_start=False, keep_traces=2, spool_dir=folder)
        recorder = server.recorder
        with tf.train.MonitoredTrainingSession(hooks=[server.hook]) as session:
            for step in range(30):
                recorder.set_trace_all(3 <= step < 6)
                session.run([train, loss], {x: np.full([4, 8], step % 2, np.float32)})
                session.run(y, {x: np.ones([4, 8], np.float32)})
                recorder.flush()
            recorder.set_note(recorder.runs()[0]["traces"][-1]["id"], "the first that was slow: schön langsam")
            recorder.set_headline(recorder.runs()[1]["traces"][-1]["id"], "Nothing stands out.")
        recorder.flush()
        keep(recorder, str(VERSION))


def stalls():
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(spool_dir=folder).start()
        record_slow_steps(recorder)
        keep(recorder, f"{VERSION}-stalls")
        recorder.close()


def keep(recorder, name):
    recorder.save(str(HERE / f"{name}-saved.tftrace"))
    (HERE / f"{name}-spool.tftrace").write_bytes(Path(recorder.session()["file"]).read_bytes())
    expected = shown(open_session(HERE / f"{name}-spool.tftrace"))
    (HERE / f"{name}.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    stalls() if sys.argv[1:] == ["stalls"] else training()
