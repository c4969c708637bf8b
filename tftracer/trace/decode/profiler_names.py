"""Names of events of TensorFlow's profiler that more than one module recognizes."""

from __future__ import annotations

#: Prefix of an eager op; its type follows.
EAGER = "EagerLocalExecute: "
#: Prefix of a stage of tf.data; its path follows.
STAGE = "Iterator::"
#: A turn of TensorFlow's executor on a thread; one execution of a function takes several turns.
TURN = "ExecutorState::Process"
