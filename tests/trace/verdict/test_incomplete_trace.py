"""Findings: each is told when it holds, and not when it does not, with a remedy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from job_steps import recorded
from traces import CPU, GPU, STREAM, N, make_trace

from tftracer.trace.decode.xspace import decode_xspace
from tftracer.trace.model import NodeKind, Span, Trace, TraceContext
from tftracer.trace.verdict import incomplete_trace
from tftracer.trace.verdict.findings import NOTES, finding
from tftracer.trace.verdict.incomplete_trace import findings_of

COMPLETE = [N("a", "MatMul", 1, 5, scheduled=0)]
ON_GPU = [N("a", "MatMul", 1, 5, GPU, NodeKind.LAUNCH, scheduled=0)]


def codes(trace: Trace, context: TraceContext | None = None) -> list[str]:
    findings = findings_of(trace, context or TraceContext())
    for each in findings:
        assert each["message"] and each["remedy"] and each["severity"] in ("info", "warning", "error")
    return [f["code"] for f in findings]


def complete(nodes: list[N] = COMPLETE) -> Trace:
    trace = make_trace(nodes)
    trace.partition_graphs = [Span(0, 0)]
    return trace


def remedy(trace: Trace, context: TraceContext, code: str) -> str:
    return next(f"{f['message']} {f['remedy']}" for f in findings_of(trace, context) if f["code"] == code)


def test_a_complete_trace_has_none() -> None:
    assert codes(complete()) == []


def test_an_empty_trace() -> None:
    assert codes(make_trace([])) == ["empty"]
    context = TraceContext(distributed=True, trace_level="SOFTWARE_TRACE")
    assert "FULL_TRACE" in remedy(make_trace([]), context, "empty")


def test_a_trace_cut_at_tensorflows_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incomplete_trace, "MAX_COLLECTED_NODES", 2)
    assert codes(complete()) == []
    assert codes(complete([*COMPLETE, N("b", "B", 1, 2, scheduled=1)])) == ["truncated"]


def test_kernels_of_no_known_op() -> None:
    assert codes(complete([*ON_GPU, N("cluster_0", "fusion", 3, 9, STREAM)])) == ["unmatched_kernels"]


@pytest.mark.parametrize(
    ("context", "cost", "words"),
    [
        (TraceContext(), True, "build_cost_model"),
        (TraceContext(partition_graphs_asked=False), False, "were not asked for"),
        (TraceContext(partition_graphs_asked=True, distributed=True), False, "distributed session"),
        (TraceContext(), False, "output_partition_graphs=True"),
    ],
)
def test_no_partition_graph_says_why(context: TraceContext, cost: bool, words: str) -> None:
    trace = make_trace(COMPLETE)
    trace.cost_graph = Span(0, 0) if cost else None
    assert codes(trace, context) == ["no_partition_graph"]
    assert words in remedy(trace, context, "no_partition_graph")


def test_times() -> None:
    assert codes(complete([N("a", "A", 0, 1)])) == ["no_scheduled"]
    trace = complete([*COMPLETE, N("b", "B", 3, 4, CPU, scheduled=2)])
    trace.start[1] = trace.end[1] = -1
    assert codes(trace) == ["bad_times"]
    assert "1 nodes" in remedy(trace, TraceContext(), "bad_times")


def test_devices_hidden_by_the_user() -> None:
    assert codes(complete(), TraceContext(device_pattern="GPU")) == ["devices_hidden"]


@pytest.mark.parametrize("code", sorted(NOTES))
def test_what_the_decoder_noted(code: str) -> None:
    trace = complete()
    trace.notes = [f"{code}: 17 of them", code]
    assert codes(trace) == [code]
    assert "17 of them" in remedy(trace, TraceContext(), code)


def test_what_a_profiler_reports_is_a_finding() -> None:
    raw = (Path(__file__).parents[2] / "data" / "xspace" / "eager_tf2.21.xplane.pb").read_bytes()
    messages = b"".join(bytes([tag << 3 | 2, len(text)]) + text for tag, text in ((2, b"no CUPTI"), (2, b"no GPU"), (3, b"slow")))
    trace = decode_xspace(raw + messages)
    assert {"profiler_errors: no CUPTI; no GPU", "profiler_warnings: slow"} <= set(trace.notes)
    said = remedy(trace, TraceContext(), "profiler_errors")
    assert "reported errors" in said and "(no CUPTI; no GPU)" in said
    assert "(slow)" in remedy(trace, TraceContext(), "profiler_warnings")


def test_an_unknown_note_is_told_as_it_is() -> None:
    trace = complete()
    trace.notes = ["half of the file is missing"]
    assert findings_of(trace, TraceContext())[0]["message"] == "half of the file is missing"


def test_what_the_file_lacks_goes_before_and_the_gravest_first() -> None:
    own = finding("no_partition_graph", "info", "The JSON has no graph.", "Keep the RunMetadata.")
    trace = make_trace(COMPLETE)
    trace.notes = ["bad_times"]
    findings = findings_of(trace, TraceContext(findings=[own]))
    assert [(f["code"], f["severity"]) for f in findings] == [("bad_times", "warning"), ("no_partition_graph", "info")]
    assert findings[1] == own


def test_a_format_that_says_what_it_lacks_is_not_told_twice() -> None:
    own = finding("timeline_json", "info", "No graph, no scheduling times.", "Keep the RunMetadata.")
    assert codes(make_trace([N("a", "A", 0, 1)]), TraceContext(findings=[own])) == ["timeline_json"]


def test_transfers_that_were_not_recorded_are_told() -> None:
    said = remedy(recorded("ps_transfers_missing_tf2.15_cpu.pb"), TraceContext(), "unrecorded_transfers")
    assert "(received by ps/0: 5 of 7)" in said and "Trace another step" in said
    assert "unrecorded_transfers" not in codes(recorded("ps_transfers_whole_tf2.15_cpu.pb"))


def test_every_finding_is_described_in_the_docs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "analyses.rst").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in Path(incomplete_trace.__file__).parent.glob("*.py"))
    for code in {*re.findall(r'finding\(\s*"([a-z_]+)"', sources), *NOTES}:
        assert f"``{code}``" in page, code
