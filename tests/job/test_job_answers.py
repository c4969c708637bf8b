"""A step of several ranks as one timeline, on one clock, with its stragglers: real ranks, real skew, a real server."""

from __future__ import annotations

from dataclasses import replace
from typing import get_type_hints

import numpy as np
import pytest
from job_steps import MS, column, horovod_pair, rank_nodes, ranks, recorded, skew
from traces import N, make_trace

from tftracer.contract.analyses import ANALYSES
from tftracer.errors import UnknownError
from tftracer.job.analyses.answers import JobAnswers
from tftracer.job.analyses.network_traffic import slow_link
from tftracer.job.analyses.process_traces import ProcessTrace
from tftracer.trace.verdict import incomplete_trace
from tftracer.trace.verdict.findings import finding

RANKS = ("rank 0", "rank 1", "rank 2")


def skewed_pair() -> list[ProcessTrace]:
    first, second = horovod_pair()
    return [first, replace(second, trace=skew(second.trace, 50 * MS, 100e-6))]


def test_two_ranks_open_as_one_timeline_in_groups() -> None:
    answer = JobAnswers(horovod_pair(), "step 7", 3).timeline()
    assert answer["trace_id"] == 3 and answer["title"] == "step 7" and answer["nodes"] == 616
    groups = [lane["group"] for lane in answer["lanes"]]
    assert groups == sorted(groups) and set(groups) == {"rank 0", "rank 1"}
    start, end = column(answer["start"]), column(answer["start"]) + column(answer["duration"])
    rows = column(answer["row_offsets"])
    for low, high in zip(rows[:-1], rows[1:]):
        assert (start[low + 1 : high] >= end[low : high - 1]).all()


def test_skew_is_removed_from_the_timeline_and_told() -> None:
    plain, answers = JobAnswers(horovod_pair(), "", 1), JobAnswers(skewed_pair(), "", 1)
    lengths = plain.collectives.end - plain.collectives.start
    difference = np.abs(answers.merged.trace.start - plain.merged.trace.start).max()
    assert difference < lengths.min() / 10
    (_, clock) = answers.analysis()["clocks"]
    assert clock["process"] == "p1" and clock["offset_ns"] == pytest.approx(50 * MS, abs=lengths.min() / 10)
    assert 0 < clock["uncertainty_ns"] < lengths.min() and clock["matches"] == 30
    (finding,) = [f for f in answers.timeline()["findings"] if f["code"] == "clock_skew"]
    assert "differ by up to 50 ms" in finding["message"]


def test_a_collective_has_the_bytes_of_its_result() -> None:
    table = JobAnswers(horovod_pair(), "", 1).analysis()["collectives"]
    assert sorted(row["bytes"] for row in table) == [4 * 16 * 64] + [4 * 64 * 64] * 29
    untold = JobAnswers(ranks(rank_nodes(), rank_nodes()), "", 1).analysis()["collectives"]
    assert {row["bytes"] for row in untold} == {None}


def test_other_steps_of_the_job_tell_the_drift() -> None:
    truth = {i: ranks(rank_nodes(), rank_nodes()) for i in range(5)}
    steps: list[JobAnswers] = []
    for i, (first, second) in truth.items():
        origin = first.trace.origin_ns + i * 10_000 * MS
        drifted = origin + 50 * MS + round(i * 10_000 * MS * 100e-6)
        parts = [
            replace(first, trace=replace(first.trace, origin_ns=origin)),
            replace(second, trace=replace(skew(second.trace, 0, 100e-6), origin_ns=drifted)),
        ]
        steps.append(JobAnswers(parts, "", i, other_steps=steps))
    clock = steps[-1].analysis()["clocks"][1]
    assert clock["drift_ppm"] == pytest.approx(100, abs=10) and clock["matches"] == 50
    n = steps[-1].sources[0].trace.n
    merged = steps[-1].merged.trace
    assert np.abs(merged.start[n:] - merged.start[:n]).max() < 20 * MS / 10


def test_the_straggler_is_the_first_sentence() -> None:
    answers = JobAnswers(ranks(rank_nodes(), rank_nodes(input_ns=20 * MS)), "", 1)
    analysis = answers.analysis()
    assert analysis["stragglers"][0]["process"] == "p1" and analysis["usual_suspects"][0]["process"] == "p1"
    sentence = analysis["sentences"][0]
    assert sentence["code"] == "straggler" and "rank 1" in sentence["text"] and 0.4 < sentence["share"] < 0.6
    assert all(answers.merged.locate(node)[0] == 1 for node in sentence["evidence"]["nodes"])
    assert answers.verdict()["sentences"][0] == sentence


def test_a_calm_step_has_the_traces_own_verdict() -> None:
    verdict = JobAnswers(ranks(rank_nodes(), rank_nodes()), "", 1).verdict()
    assert "straggler" not in {s["code"] for s in verdict["sentences"]}


def test_links_of_a_real_server_and_two_workers() -> None:
    trace = recorded("ps_worker0_tf2.21_cpu.pb")
    answers = JobAnswers([ProcessTrace("w0", "worker/0", trace), ProcessTrace("w1", "worker/1", trace)], "", 1)
    analysis = answers.analysis()
    moved = {(link["source"], link["destination"]): link for link in analysis["links"]}
    ps, worker = (f"/job:{job}/replica:0/task:0/device:CPU:0" for job in ("ps", "worker"))
    assert moved[ps, worker]["messages"] == 2 * 30 and moved[ps, worker]["bytes"] == 2 * (29 * 16384 + 4096)
    assert moved[ps, worker]["waited_ns"] > 0 and moved[worker, ps]["bytes"] > 0
    assert analysis["tensors"][0]["bandwidth"] > 0 and len(analysis["tensors"]) == 2 * 62
    for link in analysis["links"]:
        ends = link["source"], link["destination"]
        waited = [t["waited_ns"] for t in analysis["tensors"] if (t["source"], t["destination"]) == ends]
        assert 0 < max(waited) <= link["waited_ns"] <= sum(waited), "the waits overlap"
    assert all(0 <= t["waited_ns"] <= t["end_ns"] - t["start_ns"] for t in analysis["tensors"])
    assert {c["process"] for c in analysis["clocks"]} == {"w0", "w1", "ps/0"}
    assert {lane["group"] for lane in answers.timeline()["lanes"]} == {"worker/0", "ps/0"}


def test_one_machines_clock_is_no_news() -> None:
    parts, one = horovod_pair(), {"rank 0": "m", "rank 1": "m"}
    answers = JobAnswers(parts, "", 1, shared_clocks=one)
    assert answers.findings() == [] and answers.analysis()["clocks"][1]["offset_ns"] == 0
    assert answers.analysis()["clocks"][1]["matches"] == 30
    two = {"rank 0": "m", "rank 1": "n"}
    assert {f["code"] for f in JobAnswers(parts, "", 1, shared_clocks=two).findings()} == {"clock_skew"}


def test_a_link_that_holds_the_step_up_is_said_in_words() -> None:
    trace = recorded("ps_worker0_tf2.21_cpu.pb")
    waits = {"source": trace.devices[0].name, "destination": trace.devices[-1].name, "waited_ns": 3.5e8, "bytes": 41234}
    text = slow_link({**waits, "messages": 1, "wire_ns": 1.0, "mean_bandwidth": 0.0, "longest": 7}, 1e9)  # type: ignore[typeddict-item]
    assert "waited 350 ms for 41.2 kB from" in text["text"] and "/job:" not in text["text"]
    assert text["evidence"]["nodes"] == [7]


def test_a_node_leads_back_to_its_rank() -> None:
    parts = horovod_pair()
    answers = JobAnswers(parts, "", 1)
    detail, first = answers.node(400), answers.merged.first_node[1]
    own = parts[1].trace
    assert detail["node"] == 400 and detail["name"] == own.names[int(own.name[400 - first])]
    assert detail["device_title"].startswith("rank 1 ")
    assert detail["start_ns"] == float(answers.merged.trace.start[400])
    assert all(ref["node"] >= first for ref in detail["inputs"] if ref["node"] >= 0)
    with pytest.raises(UnknownError):
        answers.node(616)


def test_what_is_missing_is_said() -> None:
    findings = JobAnswers(ranks(rank_nodes()), "", 1, missing={"rank 1": "it was lost."}).findings()
    assert [f["code"] for f in findings] == ["missing_ranks"] and "rank 1: it was lost." in findings[0]["message"]


def test_what_the_parts_lack_is_said_once_with_whose_it_is() -> None:
    cut, slow = finding("truncated", "error", "Cut off.", "Less."), finding("no_scheduled", "info", "No delays.", "Later.")
    one, other = (finding("unrecorded_transfers", "warning", f"{n} are lost.", "Again.") for n in (1, 2))
    parts = ranks(rank_nodes(), rank_nodes(), rank_nodes())
    clocks = finding("clocks_apart", "warning", "The lanes are shifted.", "Trace on all.")
    lacks = [[slow, one], [slow, cut, clocks], [slow, other]]
    answers = JobAnswers([replace(p, findings=f) for p, f in zip(parts, lacks)], "", 1, shared_clocks=dict.fromkeys(RANKS, "m"))
    findings = answers.findings()
    assert [(f["code"], f["severity"], f["message"], f["remedy"]) for f in findings] == [
        ("truncated", "error", "rank 1: Cut off.", "Less."),
        ("unrecorded_transfers", "warning", "rank 0: 1 are lost. rank 2: 2 are lost.", "Again."),
        ("no_scheduled", "info", "All processes: No delays.", "Later."),
    ]
    assert answers.timeline()["findings"] == answers.analysis()["findings"] == answers.answers.budget()["findings"] == findings
    assert [f["code"] for f in answers.answers.critical_path()["findings"]] == [
        *(f["code"] for f in findings),
        "no_partition_graph",
    ]


def test_many_processes_are_named_in_short() -> None:
    parts = [replace(p, title=f"rank {i}") for i, p in enumerate(ranks(*[rank_nodes()] * 30))]
    lacking = [replace(p, findings=[finding("x", "info", f"Why {i % 5}.", "Do.")] if i else []) for i, p in enumerate(parts)]
    (said,) = [f["message"] for f in JobAnswers(lacking, "", 1).findings() if f["code"] == "x"]
    assert said.startswith("rank 1, rank 6, rank 11, ") and said.endswith("And 2 more.")
    alike = [replace(p, findings=[finding("x", "info", "Why.", "Do.")] if i else []) for i, p in enumerate(parts)]
    (said,) = [f["message"] for f in JobAnswers(alike, "", 1).findings() if f["code"] == "x"]
    assert said == f"{', '.join(f'rank {i}' for i in range(1, 11))}, 19 more: Why."


def test_many_ranks_together_are_not_a_trace_that_was_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incomplete_trace, "MAX_COLLECTED_NODES", 400)  # each of the ranks has 308
    answers = JobAnswers(horovod_pair(), "", 1)
    assert all("truncated" not in {f["code"] for f in a["findings"]} for a in (answers.timeline(), answers.answers.ops()))


def test_a_clock_that_nothing_ties_is_told() -> None:
    parts = [*ranks(rank_nodes(), rank_nodes()), ProcessTrace("p2", "rank 2", make_trace([N("MatMul", "MatMul", 0, MS)]))]
    analysis = JobAnswers(parts, "", 1).analysis()
    clock = analysis["clocks"][2]
    assert clock["offset_ns"] is clock["drift_ppm"] is clock["uncertainty_ns"] is None
    assert "rank 2" in next(f["message"] for f in analysis["findings"] if f["code"] == "clock_unknown")


def test_a_clock_that_nothing_ties_accuses_nobody() -> None:
    """Two pairs of ranks that each have collectives of their own, an hour apart by their clocks."""
    renamed = [[replace_name(node) for node in rank_nodes(late_ns=late)] for late in (0, 8 * MS)]
    others = ranks(*renamed)
    hour = [replace(p, process=f"q{i}", title=f"rank {i + 2}") for i, p in enumerate(others)]
    hour = [replace(p, trace=replace(p.trace, origin_ns=p.trace.origin_ns + 3600 * 1000 * MS)) for p in hour]
    stragglers = JobAnswers([*ranks(rank_nodes(), rank_nodes(compute_ns=9 * MS)), *hour], "", 1).stragglers()
    causes = {s["process"]: s["cause"] for s in stragglers}
    assert causes == {"p0": "none", "p1": "compute", "q0": "none", "q1": "none"}
    assert "ties its clock to the others'" in next(s["text"] for s in stragglers if s["process"] == "q1")


def replace_name(node: N) -> N:
    return replace(node, name=f"other_{node.name}")


def test_a_job_answers_every_analysis_that_the_table_gives_it() -> None:
    answers = JobAnswers(horovod_pair(), "", 1)
    of_job = [analysis for analysis in ANALYSES if analysis.of_job]
    for analysis in of_job:
        arguments = {"index": 3} if "index" in analysis.parameters else {}
        assert set(answers.answer(analysis.name, arguments)) == set(get_type_hints(analysis.message)), analysis.name
    assert answers.answer("verdict", {}) == answers.verdict() and len(of_job) > 8
