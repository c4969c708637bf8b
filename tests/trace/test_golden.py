"""Six real steps: their whole summaries as they were checked once, and their budgets and paths against plain readings.

The budgets are added up here from protobuf's own messages, moment by moment; the paths are looked up edge by edge.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from golden import CASES, DATA, GOLDEN, answers_of, summary_of

from tftracer.trace.analyses.budget import PARTS
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.summary import render, summarize

COMMUNICATION = {"RecvTensor", "HorovodAllreduce"}
INPUT = {"IteratorGetNext", "IteratorV2"}
MESSAGES = [case for case, file in CASES.items() if file.endswith(".pb")]


def equal(answer: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        return sorted(answer) == sorted(expected) and all(equal(answer[key], expected[key]) for key in expected)
    if isinstance(expected, list):
        return len(answer) == len(expected) and all(equal(a, b) for a, b in zip(answer, expected))
    return bool(answer == (pytest.approx(expected, rel=1e-6) if isinstance(expected, float) else expected))


@pytest.mark.parametrize("case", CASES)
def test_summaries(case: str) -> None:
    answers = answers_of(case)
    expected = json.loads((GOLDEN / f"{case}.json").read_text(encoding="utf-8"))
    summary = json.loads(json.dumps(summary_of(answers)))
    for key in expected:
        assert equal(summary[key], expected[key]), key
    assert sorted(summary) == sorted(expected)
    assert render(summarize(answers)) == (GOLDEN / f"{case}.txt").read_text(encoding="utf-8")


def plain_nodes(case: str) -> list[tuple[str, str, int, int, int]]:
    """(device, part, scheduled, start, end) of every node, read with protobuf."""
    metadata = message_class("RunMetadata").FromString((DATA / CASES[case]).read_bytes())
    nodes = []
    for device in metadata.step_stats.dev_stats:
        for node in device.node_stats:
            received = node.node_name == "RecvTensor"
            op = "RecvTensor" if received else node.timeline_label.rsplit(" = ", 1)[-1].split("(")[0]
            part = "exposed_communication" if op in COMMUNICATION else "input" if op in INPUT else "compute"
            start = node.all_start_nanos or node.all_start_micros * 1000
            end = start + (node.all_end_rel_nanos or node.all_end_rel_micros * 1000)
            nodes.append((device.device, part, scheduled_of(node, start), start, end))
    return nodes


def scheduled_of(node: Any, start: int) -> int:
    """When a node was scheduled, 0 if that is not known; TensorFlow up to 2.19 writes ns * 1000, modulo 2^64."""
    recorded = int(node.scheduled_nanos)
    if abs(start - recorded) < 10**12:
        return recorded
    return recorded % 2**64 // 8 * pow(125, -1, 2**61) % 2**61


def plain_budget(nodes: list[tuple[str, str, int, int, int]], first: int, last: int) -> dict[str, int]:
    times = sorted({first, last, *(t for n in nodes for t in n[2:] if first <= t <= last)})
    parts = dict.fromkeys([*PARTS, "hidden_communication"], 0)
    for low, high in zip(times, times[1:]):
        running = {part for _, part, _, start, end in nodes if start <= low < end}
        waits = any(0 <= start - scheduled <= last - first and scheduled <= low < start for *_, scheduled, start, _ in nodes)
        order = ["compute", "exposed_communication", "input"]
        held = next((part for part in order if part in running), "scheduling" if waits else "idle")
        parts[held] += high - low
        if {"compute", "exposed_communication"} <= running:
            parts["hidden_communication"] += high - low
    return parts


@pytest.mark.parametrize("case", MESSAGES)
def test_budgets_equal_a_plain_sweep_over_the_messages(case: str) -> None:
    nodes = plain_nodes(case)
    first, last = min(n[3] for n in nodes), max(n[4] for n in nodes)
    answer = answers_of(case).budget()
    assert answer["step_ns"] == last - first
    assert answer["whole"]["parts_ns"] == plain_budget(nodes, first, last)
    for device in answer["devices"]:
        assert device["parts_ns"] == plain_budget([n for n in nodes if n[0] == device["device"]], first, last)


@pytest.mark.parametrize("case", ["while_loop", "estimator"])
def test_paths_follow_edges_of_the_partition_graphs(case: str) -> None:
    metadata = message_class("RunMetadata").FromString((DATA / CASES[case]).read_bytes())
    inputs = {
        node.name: {name.lstrip("^").split(":")[0] for name in node.input}
        for graph in metadata.partition_graphs
        for node in graph.node
    }
    answers = answers_of(case)
    steps = answers.critical_path()["steps"]
    assert (steps[0]["name"], steps[0]["start_ns"]) == ("_SOURCE", 0)
    assert steps[-1]["end_ns"] == answers.trace.duration_ns
    for before, after in zip(steps, steps[1:]):
        assert before["end_ns"] <= after["end_ns"]
        if after["reason"] == "thread":
            assert answers.trace.scheduled[after["node"]] < before["end_ns"] <= after["start_ns"]
        else:
            assert after["reason"] == "op"
            assert before["name"] in {*inputs[after["name"]], "_SOURCE"}, (before["name"], after["name"])
