"""How TensorFlow's profiler names its events, where more than one reader goes by the name."""

from __future__ import annotations

#: An op that ran eagerly: the op type follows.
EAGER = "EagerLocalExecute: "
#: A stage of tf.data: its path follows.
STAGE = "Iterator::"
#: The executor at work for one run of a function: an event for each of its turns on a thread.
TURN = "ExecutorState::Process"
