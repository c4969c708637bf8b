"""The merged step holds every node of every rank, on one clock, on lanes of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from job_steps import MS, horovod_pair, rank_nodes, ranks, recorded, skew
from traces import make_trace

from tftracer.job.analyses.clocks import Clock
from tftracer.job.analyses.merged import merge
from tftracer.job.analyses.process_traces import Owners, ProcessTrace, align
from tftracer.scripting.job import job_clocks
from tftracer.trace.model import UNKNOWN_TIME


def merged(parts: list[ProcessTrace], clocks: list[Clock] | None = None):  # type: ignore[no-untyped-def]
    owners = Owners.of(parts)
    return merge(align(parts, owners, clocks or [Clock(0)] * len(owners.titles)), owners)


def test_two_real_ranks_become_one_trace() -> None:
    parts = horovod_pair()
    whole = merged(parts)
    assert whole.trace.n == 616 and whole.first_node == [0, 308, 616]
    assert list(whole.groups.values()) == ["rank 0", "rank 1"]
    for node in (0, 307, 308, 615):
        part, inner = whole.locate(node)
        own = parts[part].trace
        assert whole.trace.names[int(whole.trace.name[node])] == own.names[int(own.name[inner])]
        assert whole.trace.start[node] + whole.trace.origin_ns == own.start[inner] + own.origin_ns
    assert whole.trace.start.min() == 0 and (whole.trace.end >= whole.trace.start).all()
    assert (whole.trace.device[:308] == 0).all() and (whole.trace.device[308:] == 1).all()


def test_a_node_that_does_not_exist() -> None:
    with pytest.raises(IndexError):
        merged(horovod_pair()).locate(616)


def test_the_clocks_are_taken_off() -> None:
    first, second = ranks(rank_nodes(), rank_nodes())
    second = ProcessTrace("p1", "rank 1", skew(second.trace, 50 * MS, 0.0))
    whole = merged([first, second], [Clock(0), Clock(first.trace.origin_ns, 50.0 * MS)])
    assert np.array_equal(whole.trace.start[: first.trace.n], whole.trace.start[first.trace.n :])


def test_a_servers_lanes_say_for_whom_it_worked() -> None:
    trace = recorded("ps_worker0_tf2.21_cpu.pb")
    whole = merged([ProcessTrace("w0", "worker/0", trace), ProcessTrace("w1", "worker/1", trace)])
    assert {(whole.groups[d.name], d.title) for d in whole.trace.devices} >= {
        ("ps/0", "CPU:0 for worker/0"),
        ("ps/0", "CPU:0 for worker/1"),
        ("worker/0", "CPU:0"),
    }
    assert len({d.parent for d in whole.trace.devices}) == len(whole.trace.devices)


def test_a_node_without_a_time_has_none_in_the_job_either() -> None:
    nodes = rank_nodes()
    parts = ranks([replace(nodes[0], start=UNKNOWN_TIME, end=UNKNOWN_TIME), *nodes[1:]], nodes)
    whole = merged(parts)
    assert not whole.trace.drawn[0] and whole.trace.drawn[1:].all()
    timed = [parts[0].trace.start[1:] + parts[0].trace.origin_ns, parts[1].trace.start + parts[1].trace.origin_ns]
    assert whole.trace.origin_ns == min(int(start.min()) for start in timed)
    times = job_clocks([parts], {}).aligned("rank 0", parts[0].trace)
    assert times.start[0] == times.end[0] == UNKNOWN_TIME and times.origin_ns == int(timed[0].min())


def test_nothing_at_all() -> None:
    assert merged([]).trace.n == 0
    assert merged([ProcessTrace("a", "rank 0", make_trace([]))]).trace.n == 0
