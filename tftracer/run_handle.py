"""The record of a run that all parts of a live session share, from the training threads to the writer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class RunHandle:
    """A run of this process, compared by identity. The session sets ``run_id`` at the run's first step; it is 0 before."""

    title: str
    fetches: tuple[str, ...]  # for functions: a label that is the same for all signatures of the function
    feeds: tuple[str, ...]
    options: str
    definition: str = ""  # for functions: where the function is defined
    run_id: int = 0
    steps: int = 0  # number of steps passed to the session
    requested: int = 0  # steps still to be traced
    graph_on_request: bool = False  # for compiled functions: the optimized graph is not known, but can be requested
    graph_requested: bool = False  # the graph is still to be collected; no step is traced meanwhile
    refusal: str = ""  # why its steps cannot be traced
    changed: str = ""  # for compiled functions: how the signature differs from that of the most similar earlier tracing
    tracings: int = 0  # for compiled functions: how often TensorFlow traced the function so far, all signatures together
    has_python: bool = False  # its steps also run Python code of the script, as the steps of an eager loop do
    is_session: bool = False  # its steps are calls of a session
    last_thread: int = 0  # the thread that ran the last step
    outside_ns: int = 0  # ThreadTime.outside_ns of that thread at that step (capture/steps/thread_time.py)
    input_ns: int = 0  # the part of outside_ns in which the thread waited for tf.data
