"""Clocks that are apart, found in one worker's trace: real steps with the server's times moved, and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from job_steps import recorded
from traces import PS, WORKER, N, make_trace, received

from tftracer.trace.model import Trace
from tftracer.trace.verdict.clock_skew import MIN_NS, clocks_apart

MS = 1_000_000


def server_moved(trace: Trace, by_ns: int) -> Trace:
    """The trace as it would be if the server's clock were ahead by so much."""
    moved = np.array([device.job == "ps" for device in trace.devices])[trace.device] * by_ns
    first = min(0, int((trace.start + moved).min()))
    columns = {name: getattr(trace, name) + moved - first for name in ("start", "end", "op_start", "op_end")}
    return replace(trace, **columns)


@pytest.mark.parametrize(
    "name", ["ps_transfers_whole_tf2.15_cpu.pb", "ps_transfers_missing_tf2.15_cpu.pb", "ps_worker0_tf2.21_cpu.pb"]
)
def test_a_servers_clock_that_is_apart_is_found_either_way(name: str) -> None:
    trace = recorded(name)
    assert clocks_apart(trace) == {}, "all ran on one machine"
    step = trace.duration_ns
    for by, pair in ((50 * MS, ("ps/0", "worker/0")), (-50 * MS, ("worker/0", "ps/0"))):
        ((devices, least),) = clocks_apart(server_moved(trace, by)).items()
        assert devices == pair and 50 * MS - step < least <= 50 * MS


def test_by_hand() -> None:
    late = MIN_NS * 3
    nodes = [N("w", "ReadVariableOp", 0, late, PS), received("edge_1_w", 0, MIN_NS, 8), received("edge_2_none", 0, 1, 8)]
    assert clocks_apart(make_trace(nodes)) == {("ps/0", "worker/0"): 2 * MIN_NS}
    again = [*nodes, received("edge_1_w", 10, late, 8)]  # in a loop: what came may be another round's
    assert clocks_apart(make_trace(again)) == {}
    earlier = [*nodes, N("w", "ReadVariableOp", 0, MIN_NS, PS)]
    assert clocks_apart(make_trace(earlier)) == {}
    assert clocks_apart(make_trace([N("w", "W", 0, late, WORKER), N("v", "V", 0, 1, PS)])) == {}
    assert clocks_apart(make_trace([])) == {}
    untimed = [N("w", "ReadVariableOp", -1, -1, PS), received("edge_1_w", -1, -1, 8), received("edge_1_w", 0, 5, 8)]
    assert clocks_apart(make_trace(untimed)) == {}
