from __future__ import annotations

import numpy as np
from traces import CPU, GPU, PS, STREAM, WORKER, N, make_trace

from tftracer.trace.analyses.waits_for_threads import NEXT_OP_NS, waits_for_threads
from tftracer.trace.model import NodeKind


def waits(*nodes: N) -> dict[str, str]:
    """Name of each op that waited for a thread -> name of the op that it waited for."""
    node, before = waits_for_threads(make_trace(nodes))
    return {nodes[n].name: nodes[b].name for n, b in zip(node.tolist(), before.tolist())}


def test_an_op_that_was_ready_while_its_thread_was_busy_waited_for_it() -> None:
    first, second = N("a", "MatMul", 0, 10, scheduled=0), N("b", "Const", 11, 12, scheduled=3)
    assert waits(first, second) == {"b": "a"}


def test_an_op_that_starts_late_on_a_free_thread_waited_for_none() -> None:
    assert waits(N("a", "MatMul", 0, 10, scheduled=0), N("b", "Relu", 90, 95, scheduled=10)) == {}


def test_an_op_whose_scheduling_time_is_unknown_is_not_said_to_wait() -> None:
    assert waits(N("a", "MatMul", 0, 10), N("b", "Relu", 11, 15)) == {}


def test_of_two_threads_an_op_runs_on_the_one_that_became_free_last() -> None:
    long, short = N("long", "MatMul", 0, 100, scheduled=0), N("short", "MatMul", 1, 20, scheduled=0)
    assert waits(long, short, N("c", "MatMul", 21, 150, scheduled=5), N("d", "MatMul", 101, 120, scheduled=5)) == {
        "c": "short",
        "d": "long",
    }


def test_an_asynchronous_op_holds_no_thread_but_may_end_a_wait() -> None:
    batch = N("next", "IteratorGetNext", 1, 80_000, scheduled=0, kind=NodeKind.INPUT)
    early, late = N("a", "MatMul", 2, 20, scheduled=0), N("b", "Const", 21, 25, scheduled=1)
    assert waits(batch, early, late) == {"b": "a"}
    starved = N("c", "Const", 80_100, 80_200, scheduled=1)
    assert 80_100 - late.end > NEXT_OP_NS
    assert waits(batch, early, late, starved) == {"b": "a", "c": "next"}


def test_an_asynchronous_op_waits_for_a_thread_to_start_it() -> None:
    batch = N("next", "IteratorGetNext", 30, 90, scheduled=2, kind=NodeKind.INPUT)
    assert waits(N("a", "MatMul", 0, 28, scheduled=0), batch) == {"next": "a"}


def test_processes_and_streams_share_no_threads_with_others() -> None:
    assert waits(N("a", "MatMul", 0, 9, PS, scheduled=0), N("b", "MatMul", 9, 12, WORKER, scheduled=1)) == {}
    assert waits(N("a", "MatMul", 0, 9, STREAM, scheduled=0), N("b", "MatMul", 9, 12, CPU, scheduled=1)) == {}
    assert waits(N("a", "MatMul", 0, 9, GPU, scheduled=0), N("b", "MatMul", 9, 12, CPU, scheduled=1)) == {"b": "a"}


def test_in_a_profile_an_op_waited_for_the_one_right_before_it_on_its_thread() -> None:
    nodes = [
        N("a", "MatMul", 0, 100),
        N("b", "Relu", 10, 50),
        N("c", "Const", 101, 120),
        N("d", "Const", 51, 70),
        N("late", "Const", 120 + NEXT_OP_NS + 1, 120 + NEXT_OP_NS + 9),
        N("batch", "BatchV2", 200, 300, kind=NodeKind.INPUT),
    ]
    trace = make_trace(nodes)
    trace.source, trace.thread = "xspace", np.array([7, 9, 7, 9, 7, 7])
    node, before = waits_for_threads(trace)
    assert sorted(zip(node.tolist(), before.tolist())) == [(2, 0), (3, 1)]
