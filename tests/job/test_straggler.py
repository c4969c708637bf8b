"""The rank that the others wait for is named, with what it did more of."""

from __future__ import annotations

import pytest
from job_steps import ALLREDUCES, MS, horovod_pair, rank_nodes, ranks
from traces import N

from tftracer.contract.job import CollectiveRow, Straggler
from tftracer.job.analyses.clocks import Clock
from tftracer.job.analyses.collectives import find_collectives
from tftracer.job.analyses.process_traces import Owners, ProcessTrace, align
from tftracer.job.analyses.straggler import Waits, collective_rows, rank_of, stragglers, usual_suspects
from tftracer.trace.model import NodeKind


def judged(parts: list[ProcessTrace], clock_error_ns: float = 0.0) -> tuple[list[Straggler], list[CollectiveRow]]:
    owners = Owners.of(parts)
    aligned = align(parts, owners, [Clock(0)] * len(owners.titles))
    ranks = [rank_of(a, i) for i, a in enumerate(aligned)]
    met = find_collectives(parts)
    waits, ids = Waits.of(met.start, ranks), [p.process for p in parts]
    return stragglers(ranks, waits, ids, clock_error_ns), collective_rows(met, waits, ids, [0.0] * len(met))


@pytest.mark.parametrize(
    ("slow", "cause"),
    [
        (rank_nodes(compute_ns=22 * MS), "compute"),
        (rank_nodes(input_ns=20 * MS), "input"),
        (rank_nodes(late_ns=20 * MS), "input"),
    ],
)
def test_a_rank_slowed_on_purpose(slow: list[N], cause: str) -> None:
    first, *others = judged(ranks(rank_nodes(), slow, rank_nodes()))[0]
    assert (first["process"], first["cause"]) == ("p1", cause)
    assert first["waited_for_ns"] == pytest.approx(20 * MS, rel=0.01)
    assert "20 ms" in first["text"] and "rank 1 came last to 10 of 10" in first["text"]
    assert {s["cause"] for s in others} == {"none"}
    assert all(s["waiting_ns"] == pytest.approx(20 * MS, rel=0.01) for s in others)


def test_communication_that_nothing_hides() -> None:
    slow = [N("recv", "RecvTensor", 0, 20 * MS, kind=NodeKind.COMMUNICATION), *rank_nodes(late_ns=20 * MS)]
    first = judged(ranks(rank_nodes(), slow))[0][0]
    assert (first["process"], first["cause"]) == ("p1", "communication")


def test_each_collective_names_who_came_last_and_who_waited() -> None:
    table = judged(ranks(rank_nodes(), rank_nodes(compute_ns=5 * MS), rank_nodes(compute_ns=3 * MS)))[1]
    assert len(table) == ALLREDUCES and {row["last"] for row in table} == {"p1"}
    assert table[0]["waited_ns"] == {"p0": 3 * MS, "p2": 2 * MS} and table[0]["spread_ns"] == 3 * MS


def test_time_used_otherwise_is_not_waiting() -> None:
    busy = [*rank_nodes(), N("gradient", "MatMul", 2 * MS, 12 * MS)]
    waiting = {s["process"]: s["waiting_ns"] for s in judged(ranks(busy, rank_nodes(compute_ns=22 * MS)))[0]}
    assert waiting["p0"] == pytest.approx(10 * MS, rel=0.01)


def test_what_lies_within_the_clocks_error_accuses_nobody_and_is_called_uncertain() -> None:
    parts = ranks(rank_nodes(), rank_nodes(compute_ns=5 * MS))
    found = judged(parts, clock_error_ns=4.0 * MS)[0]
    assert {s["cause"] for s in found} == {"none", "uncertain"}
    (uncertain,) = [s for s in found if s["cause"] == "uncertain"]
    assert uncertain["text"].startswith("It is uncertain whether rank 1 holds the others up")


def test_without_collectives_the_longest_step_is_slow() -> None:
    steps = [[N("MatMul", "MatMul", 0, ms * MS)] for ms in (5, 20, 5)]
    first, *others = judged(ranks(*steps))[0]
    assert (first["process"], first["cause"], first["slower_by_ns"]) == ("p1", "compute", 15 * MS)
    assert "rank 1's step took 15 ms longer" in first["text"] and {s["cause"] for s in others} == {"none"}


def test_one_rank_alone_holds_nobody_up() -> None:
    (only,) = judged(ranks(rank_nodes()))[0]
    assert only["cause"] == "none" and only["waited_for_ns"] == 0


def test_real_ranks() -> None:
    first, second = judged(horovod_pair())[0]
    assert (first["process"], first["cause"], second["cause"]) == ("p0", "input", "none")


def test_usual_suspects_add_up() -> None:
    step = judged(ranks(rank_nodes(), rank_nodes(input_ns=20 * MS)))[0]
    calm = judged(ranks(rank_nodes(), rank_nodes()))[0]
    first, second = usual_suspects([step, step, calm], {"p1": "rank 1"})
    assert first["process"] == "p1" and first["waited_for_ns"] == pytest.approx(40 * MS, rel=0.01)
    assert first["text"] == "rank 1 held the others up in 2 of 3 traced steps, 40 ms in all, mostly by input."
    assert second["cause"] == "none"
    assert usual_suspects([], {}) == []
