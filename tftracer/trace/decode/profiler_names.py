"""Names of events of TensorFlow's profiler that more than one module recognizes."""

from __future__ import annotations

#: An op that ran eagerly: the op type follows.
EAGER = "EagerLocalExecute: "
#: A stage of tf.data: its path follows.
STAGE = "Iterator::"
#: One turn of TensorFlow's executor on a thread; one run of a function has several.
TURN = "ExecutorState::Process"
