"""Chrome JSON: every op, time and device of TensorFlow's own Timeline, rows without overlaps, arrows along true edges."""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.traces import GPU, H2D, STREAM, N, make_trace
from tftracer.export.chrome import escaped, process_id, write_chrome_trace, write_chrome_traces
from tftracer.session.foreign import open_bytes
from tftracer.trace.answers import Answers
from tftracer.trace.descriptors import message_class
from tftracer.trace.model import NodeKind, StringTable, TraceContext

DATA = Path(__file__).parent / "data"
FILES = sorted([*DATA.glob("*.pb"), DATA / "foreign" / "step.pb"])


def answers_of(path: Path) -> Answers:
    return Answers(path.read_bytes(), TraceContext())


def written(answers: Answers, **options: Any) -> dict[str, Any]:
    file = io.BytesIO()
    write_chrome_trace(answers, file, **options)
    return json.loads(file.getvalue())


def phase(trace: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == name]


def devices(trace: dict[str, Any]) -> dict[int, str]:
    return {event["pid"]: event["args"]["name"] for event in phase(trace, "M") if event["name"] == "process_name"}


def as_tensorflow_reads(path: Path) -> list[tuple[str, str, str, int, int, tuple[str, ...]]]:
    """(device, name, op, start, duration in whole µs, inputs) by the rules of timeline.py: one node at a time, with its regex."""
    found = []
    for device in message_class("RunMetadata").FromString(path.read_bytes()).step_stats.dev_stats:
        for node in device.node_stats:
            match = re.match(r"(.*) = (.*)\((.*)\)", node.timeline_label)
            op, inputs = (match[2], match[3]) if match else ("unknown", "")
            if node.node_name == "RecvTensor":
                op, inputs = "RecvTensor", ""
            given_ = tuple(inputs.split(", ")) if inputs else ()
            found.append((device.device, node.node_name, op, node.all_start_micros, node.all_end_rel_micros, given_))
    return sorted(found)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_op_time_and_device_of_tensorflow_s_timeline(path: Path) -> None:
    trace = written(answers_of(path))
    names = devices(trace)
    found = []
    for event in phase(trace, "X"):
        args = event["args"]
        inputs = tuple(args[f"input{i}"] for i in range(sum(key.startswith("input") for key in args)))
        end = int(event["ts"] + event["dur"])
        found.append((names[event["pid"]], args["name"], args["op"], int(event["ts"]), end - int(event["ts"]), inputs))
        assert event["name"] == args["op"]
    assert sorted(found) == as_tensorflow_reads(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_two_slices_overlap_on_a_thread(path: Path) -> None:
    """As a reader sees them: in doubles."""
    rows: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    trace = written(answers_of(path))
    for event in phase(trace, "X"):
        rows[event["pid"], event["tid"]].append((float(event["ts"]), float(event["ts"]) + float(event["dur"])))
    for slices in rows.values():
        assert all(before[1] <= after[0] for before, after in zip(slices, slices[1:]))
    threads = {(event["pid"], event["tid"]) for event in phase(trace, "M") if event["name"] == "thread_name"}
    assert set(rows) <= threads
    assert all(tid > 0 for _, tid in rows)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_arrows_run_along_the_graph_s_edges(path: Path) -> None:
    answers = answers_of(path)
    trace = written(answers)
    at: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for event in phase(trace, "X"):
        at[event["pid"], event["tid"]].append(event)

    def inside(flow: dict[str, Any]) -> str:
        """The slice that a reader binds the arrow's end to."""
        (found,) = [e for e in at[flow["pid"], flow["tid"]] if e["ts"] <= flow["ts"] < e["ts"] + e["dur"]]
        return str(found["args"]["name"])

    starts = {event["id"]: event for event in phase(trace, "s")}
    ends = {event["id"]: event for event in phase(trace, "f")}
    assert starts.keys() == ends.keys()
    if path.stem.startswith("ps_"):
        assert starts
    names, graph = answers.trace.names, answers.graph
    pairs = zip(graph.producer.tolist(), graph.consumer.tolist(), graph.control.tolist())
    edges = {(names[answers.trace.name[a]], names[answers.trace.name[b]]) for a, b, control in pairs if not control}
    for number, start in list(starts.items())[:500]:
        end = ends[number]
        assert (inside(start), inside(end)) in edges
        assert end["ts"] >= start["ts"]
        assert (start["pid"], start["tid"]) != (end["pid"], end["tid"])


def test_without_arrows_with_memory() -> None:
    answers = answers_of(DATA / "dense500_tf2.15_cpu.pb")
    trace = written(answers, show_dataflow=False, show_memory=True)
    assert not phase(trace, "s")
    counters = phase(trace, "C")
    (curve, *_) = answers.memory()["curves"]
    mine = [event["args"][curve["allocator"]] for event in counters if event["name"] == curve["allocator"]]
    assert max(mine) == curve["peak_bytes"]
    assert not phase(written(answers), "C")


def test_several_traces_merge_into_one_list() -> None:
    """One device, one process, in whatever order the traces come; of two ranks, two."""
    first, second = (answers_of(DATA / f"horovod_rank{rank}_tf2.15_cpu.pb") for rank in (0, 1))
    file = io.BytesIO()
    write_chrome_traces([("rank 0", first), ("rank 1", second)], file)
    trace = json.loads(file.getvalue())
    assert sorted(devices(trace).values()) == [f"rank {rank} {first.trace.devices[0].name}" for rank in (0, 1)]
    assert len(phase(trace, "X")) == first.trace.n + second.trace.n
    alone = devices(written(first))
    assert alone == {process_id(name): name for name in alone.values()} == devices(written(second))
    flows = [event["id"] for event in phase(trace, "s")]
    assert len(flows) == len(set(flows))


def test_names_that_need_escapes() -> None:
    """In JSON a name stays a name, whatever is in it."""
    names = ['quote"', "back\\slash", "new\nline", "</script>", "ünïcödé", "\x00\x1f", "tab\t"]
    trace = make_trace([N(name, "Op", i * 10_000, i * 10_000 + 5_000, inputs=("a",)) for i, name in enumerate(names)])
    found = written(Answers(None, TraceContext(), trace=trace))
    assert [event["args"]["name"] for event in phase(found, "X")] == names
    assert [event["args"]["input0"] for event in phase(found, "X")] == ["a"] * len(names)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text()))
def test_escaping_is_json_s(texts: list[str]) -> None:
    encodable = [text.encode("utf-8", "replace").decode() for text in texts]
    assert [json.loads(f'"{text}"') for text in escaped(StringTable.of(texts))] == encodable


def test_kernels_and_copies() -> None:
    nodes = [
        N("MatMul", "MatMul", 0, 2_000, GPU, NodeKind.LAUNCH),
        N("MatMul:MatMul", "MatMul", 3_000, 9_000, STREAM, label="sgemm_128 regs:8"),
        N("x:MEMCPYHtoD", "MEMCPYHtoD", 1_000, 2_000, H2D, NodeKind.COPY, label="MEMCPYHtoD 4096 bytes", bytes_moved=4096),
    ]
    found = written(Answers(None, TraceContext(), trace=make_trace(nodes)))
    args = [event["args"] for event in phase(found, "X")]
    assert {"name": "MatMul", "op": "MatMul", "label": "sgemm_128 regs:8"} in args
    assert {"name": "x", "op": "MEMCPYHtoD", "label": "MEMCPYHtoD 4096 bytes"} in args


def test_what_is_missing_is_in_the_file() -> None:
    found = written(Answers((DATA / "foreign" / "step.pb").read_bytes(), TraceContext(device_pattern="no such")))
    assert "devices_hidden" in [finding["code"] for finding in found["otherData"]["findings"]]
    assert not phase(found, "X")


def test_what_we_write_we_can_open() -> None:
    path = DATA / "ps_worker0_tf2.21_cpu.pb"
    file = io.BytesIO()
    write_chrome_trace(answers_of(path), file)
    again = open_bytes(file.getvalue()).runs[0].traces[0].raw
    expected = [entry for entry in as_tensorflow_reads(path) if entry[2] != "unknown"]

    def keys(found: list[Any]) -> list[Any]:
        return sorted(entry[:2] + entry[3:5] for entry in found)

    message = message_class("RunMetadata").FromString(again)
    opened = [
        (device.device, node.node_name, "", node.all_start_micros, node.all_end_rel_micros)
        for device in message.step_stats.dev_stats
        for node in device.node_stats
    ]
    assert keys(opened) == keys(expected)
