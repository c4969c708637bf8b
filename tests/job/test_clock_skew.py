"""Clock skew injected into a rank's times, as its hub takes it out again: real servers, the recorded step of two real ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from job_steps import MS, column, horovod_pair
from local_jobs import DATA, Jobs, Rank

from tftracer.contract.trace import Timeline
from tftracer.job.agent import heartbeat
from tftracer.job.analyses.answers import JobAnswers
from tftracer.trace.arrays.types import Float64
from tftracer.trace.decode.descriptors import message_class

OFFSET_NS, DRIFT = 50 * MS, 100e-6
#: Between two traced steps; over five of them the drift alone is four milliseconds.
APART_NS = 10_000 * MS
STEPS = 5


def raw_of(rank: int) -> bytes:
    return (DATA / f"horovod_rank{rank}_tf2.15_cpu.pb").read_bytes()


def first_ns() -> int:
    """When the recorded step began."""
    return min(part.trace.origin_ns for part in horovod_pair())


def timed_by_another_clock(raw: bytes, later_ns: int, skewed: bool) -> bytes:
    """The RunMetadata of the same step done ``later_ns`` later, by a clock that is ahead and runs fast."""
    metadata, origin = message_class("RunMetadata")(), first_ns()
    metadata.ParseFromString(raw)
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            at = node.all_start_nanos + later_ns
            ahead = round(OFFSET_NS + DRIFT * (at - origin)) if skewed else 0
            node.all_start_nanos, node.all_start_micros = at + ahead, (at + ahead) // 1000
            node.scheduled_nanos, node.scheduled_micros = 0, 0
    return bytes(metadata.SerializeToString())


def traced(first: Rank, second: Rank, skewed: bool) -> list[Any]:
    """Steps traced on both, ten seconds apart by the clocks."""
    offsets = []
    for step in range(STEPS):
        first.raw = timed_by_another_clock(raw_of(0), step * APART_NS, False)
        second.raw = timed_by_another_clock(raw_of(1), step * APART_NS, skewed)
        offsets.append(first.trace())
        assert len(offsets[-1]["ready"]) == 2
    return offsets


def starts(timeline: Timeline) -> Float64:
    """[nodes] ns from rank 0's first start, as the page draws it."""
    start = np.zeros(timeline["nodes"])
    start[column(timeline["node"])] = column(timeline["start"])
    return start - float(start[: timeline["nodes"] // 2].min())


def test_what_was_injected_is_found_and_removed_from_what_the_page_draws(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heartbeat, "machine_clock", lambda host: "")  # as on two machines
    first, second = jobs.start(2)
    truth = JobAnswers(horovod_pair(), "", 1, shared_clocks={"rank 0": "m", "rank 1": "m"})
    shortest = float((truth.collectives.end - truth.collectives.start).min())
    true_starts, true_straggler = starts(truth.timeline()), truth.analysis()["stragglers"][0]
    traces = traced(first, second, skewed=True)
    for trace in (traces[0], traces[-1]):
        timeline = first.packed(f"api/job/traces/{trace['id']}/timeline")
        assert np.abs(starts(timeline) - true_starts).max() < shortest / 10
    last = first.get(f"api/job/traces/{traces[-1]['id']}/analysis")
    (_, clock) = last["clocks"]
    assert abs(clock["offset_ns"] - OFFSET_NS) < DRIFT * STEPS * APART_NS
    assert clock["drift_ppm"] == pytest.approx(100, abs=10)
    assert 0 < clock["uncertainty_ns"] < shortest / 5
    (said,) = [f for f in last["findings"] if f["code"] == "clock_skew"]
    assert "clocks differ by up to" in said["message"]
    (straggler, _) = last["stragglers"]
    titles = {p["id"]: p["title"] for p in first.job()["processes"]}
    assert titles[straggler["process"]] == "rank 0" and straggler["cause"] == true_straggler["cause"]
    assert straggler["waited_for_ns"] == pytest.approx(true_straggler["waited_for_ns"], abs=shortest / 10)


def test_a_rank_that_is_late_on_one_machine_is_drawn_late(jobs: Jobs) -> None:
    """One machine has one clock: what differs between the ends of its ranks is time that they waited for a processor."""
    first, second = jobs.start(2)
    truth = starts(JobAnswers(horovod_pair(), "", 1, shared_clocks={"rank 0": "m", "rank 1": "m"}).timeline())
    (trace, *_) = traced(first, second, skewed=True)
    late = starts(first.packed(f"api/job/traces/{trace['id']}/timeline")) - truth
    ranks = np.split(late, 2)
    assert np.abs(ranks[0]).max() == 0 and np.abs(ranks[1] - OFFSET_NS).max() < DRIFT * APART_NS
    analysis = first.get(f"api/job/traces/{trace['id']}/analysis")
    assert [clock["offset_ns"] for clock in analysis["clocks"]] == [0, 0]
    assert "clock_skew" not in [finding["code"] for finding in analysis["findings"]]
