"""The collectives and sends that processes have in common, in real traces, also with injected skew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from job_steps import MS, horovod_pair, rank_nodes, ranks, recorded, skew
from traces import N, make_trace

from tftracer.job.analyses.clocks import estimate
from tftracer.job.analyses.collectives import MISSING, find_collectives, observations
from tftracer.job.analyses.process_traces import Owners, ProcessTrace
from tftracer.trace.model import NodeKind


def test_two_real_ranks_share_all_their_allreduces() -> None:
    met = find_collectives(horovod_pair())
    assert len(met) == 30 and set(met.ops) == {"HorovodAllreduce"}
    assert (met.start != MISSING).all() and (met.end > met.start).all()
    assert met.names[0].endswith("HorovodAllreduce_gradients_MatMul_29_grad_tuple_control_dependency_1_0")


@pytest.mark.parametrize("offset_ms", [0, 50, -50, 3_600_000])
def test_skew_injected_into_a_real_rank_is_found_to_a_tenth_of_its_shortest_collective(offset_ms: int) -> None:
    first, second = horovod_pair()
    second = replace(second, trace=skew(second.trace, offset_ms * MS, 100e-6))
    parts = [first, second]
    met, owners = find_collectives(parts), Owners.of(parts)
    shortest = int((met.end - met.start).min())
    clock = estimate(observations(parts, owners, met), 2)[1]
    true_start = horovod_pair()[1].trace
    left = clock.to_reference(second.trace.start + second.trace.origin_ns) - (true_start.start + true_start.origin_ns)
    assert np.abs(left).max() < shortest / 10
    assert clock.matches == 30


def test_the_clocks_of_a_real_worker_and_its_server_are_tied_by_their_sends() -> None:
    trace = recorded("ps_worker0_tf2.21_cpu.pb")
    server = next(code for code, d in enumerate(trace.devices) if d.job == "ps")
    for column in (trace.start, trace.end):
        column[trace.device == server] += 50 * MS
    parts = [ProcessTrace("w0", "worker/0", trace)]
    owners = Owners.of(parts)
    assert owners.titles == ["worker/0", "ps/0"]
    clock = estimate(observations(parts, owners, find_collectives(parts)), 2)[1]
    assert abs(clock.offset_ns - 50 * MS) < 2 * clock.sigma_ns < MS
    assert clock.matches > 50


def test_the_turns_of_a_loop_are_matched_one_by_one() -> None:
    turns = [N("loop/Allreduce", "HorovodAllreduce", i * MS, i * MS + 500, kind=NodeKind.COMMUNICATION) for i in range(3)]
    met = find_collectives(ranks(turns, turns[:2]))
    assert met.names == ["loop/Allreduce", "loop/Allreduce (turn 2)"]
    assert (met.node == [[0, 0], [1, 1]]).all()


def test_what_is_no_meeting_of_ranks_is_left_out() -> None:
    local = [
        N("HorovodRank", "HorovodRank", 0, 10, kind=NodeKind.COMMUNICATION),
        N("send", "_Send", 0, 10, kind=NodeKind.COMMUNICATION),
        N("RecvTensor", "RecvTensor", 0, 10, kind=NodeKind.COMMUNICATION),
    ]
    assert len(find_collectives(ranks(local, local))) == 0


def test_ibm_ddl_and_tensorflows_own_collectives_are_met_as_horovods_are() -> None:
    types = ["DDLAllReduce", "AllReduceN", "CollectiveReduceV2", "NcclAllReduce", "HorovodGroupedAllreduce", "HorovodAllgather"]
    nodes = [N(f"{op}_{i}", op, i * MS, i * MS + 500, kind=NodeKind.COMMUNICATION) for i, op in enumerate(types)]
    assert find_collectives(ranks(nodes, nodes)).ops == types


def test_a_collective_of_a_subset_of_ranks() -> None:
    parts = ranks(rank_nodes(), [N("MatMul", "MatMul", 0, 5)], rank_nodes())
    met, owners = find_collectives(parts), Owners.of(parts)
    assert (met.node[:, 1] == MISSING).all() and (met.node[:, [0, 2]] != MISSING).all()
    assert {(o.a, o.b) for o in observations(parts, owners, met)} == {(0, 2)}


def test_empty_traces_share_nothing() -> None:
    parts = [ProcessTrace("a", "rank 0", make_trace([])), ProcessTrace("b", "rank 1", make_trace([]))]
    assert observations(parts, Owners.of(parts), find_collectives(parts)) == []
