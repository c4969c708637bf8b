"""Chrome JSON: every op, time and device of TensorFlow's own Timeline, rows without overlaps, arrows along true edges."""

from __future__ import annotations

import io
import json
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traces import CPU, GPU, H2D, STREAM, STREAM_ALL, WORKER, N, make_trace

from tftracer.export.chrome import Row, data_edges, tracks_of, write_chrome_traces
from tftracer.importers.open_any import open_bytes
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.strings import StringTable
from tftracer.trace.decode.descriptors import message_class
from tftracer.trace.decode.labels import kernel_name
from tftracer.trace.model import DeviceKind, NodeKind, Trace, TraceContext

DATA = Path(__file__).parents[1] / "data"
FILES = sorted([*DATA.glob("*.pb"), DATA / "foreign" / "step.pb"])


def answers_of(path: Path) -> Answers:
    return Answers(path.read_bytes(), TraceContext())


def written(answers: Answers, **options: Any) -> dict[str, Any]:
    file = io.BytesIO()
    write_chrome_traces([("", answers)], file, **options)
    return json.loads(file.getvalue())


def phase(trace: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["ph"] == name]


def devices(trace: dict[str, Any], what: str = "device") -> dict[int, str]:
    return {event["pid"]: event["args"][what] for event in phase(trace, "M") if event["name"] == "process_name"}


def nanoseconds(micros: float) -> int:
    return round(micros * 1000)


def as_tensorflow_reads(path: Path) -> list[tuple[str, str, str, int, int, tuple[str, ...]]]:
    """(device, name, op, start, duration in whole µs, inputs) by the rules of timeline.py: one node at a time, with its regex."""
    slices = []
    for device in message_class("RunMetadata").FromString(path.read_bytes()).step_stats.dev_stats:
        for node in device.node_stats:
            match = re.match(r"(.*) = (.*)\((.*)\)", node.timeline_label)
            op, inputs = (match[2], match[3]) if match else ("unknown", "")
            if node.node_name == "RecvTensor":
                op, inputs = "RecvTensor", ""
            given_ = tuple(inputs.split(", ")) if inputs else ()
            slices.append((device.device, node.node_name, op, node.all_start_micros, node.all_end_rel_micros, given_))
    return sorted(slices)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_op_time_and_device_of_tensorflow_s_timeline(path: Path) -> None:
    trace = written(answers_of(path))
    names, origin = devices(trace), int(trace["otherData"]["origin_ns"])
    slices = []
    for event in phase(trace, "X"):
        args = event["args"]
        inputs = tuple(args[f"input{i}"] for i in range(sum(key.startswith("input") for key in args)))
        start = origin + nanoseconds(event["ts"])
        end = start + nanoseconds(event["dur"])
        slices.append((names[event["pid"]], args["name"], args["op"], start // 1000, end // 1000 - start // 1000, inputs))
        assert event["name"] == args["op"]
    assert sorted(slices) == as_tensorflow_reads(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_two_slices_overlap_on_a_thread(path: Path) -> None:
    """As a reader sees them: in doubles."""
    rows: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
    trace = written(answers_of(path))
    for event in phase(trace, "X"):
        start, duration = int(float(event["ts"]) * 1000), int(float(event["dur"]) * 1000)  # as Perfetto's C++ does
        rows[event["pid"], event["tid"]].append((start, start + duration))
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
        (slice_at,) = [e for e in at[flow["pid"], flow["tid"]] if e["ts"] <= flow["ts"] < e["ts"] + e["dur"]]
        return str(slice_at["args"]["name"])

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


def test_an_allocator_without_a_name_has_a_counter_with_one() -> None:
    """A received tensor's; on each of the two processes."""
    counters = phase(written(answers_of(DATA / "ps_transfers_whole_tf2.15_cpu.pb"), show_memory=True), "C")
    names = {(event["pid"], event["name"]) for event in counters}
    assert sorted(name for _, name in names) == ["(unnamed allocator)"] * 2 + ["mklcpu"] * 2
    assert all(list(event["args"]) == [event["name"]] for event in counters)


def test_several_traces_merge_into_one_list() -> None:
    """Each rank has processes of its own, and so has each file: their times have different origins."""
    first, second = (answers_of(DATA / f"horovod_rank{rank}_tf2.15_cpu.pb") for rank in (0, 1))
    file = io.BytesIO()
    write_chrome_traces([("rank 0", first), ("rank 1", second)], file)
    trace = json.loads(file.getvalue())
    assert sorted(devices(trace, "name").values()) == ["rank 0 CPU:0", "rank 1 CPU:0"]
    assert len(phase(trace, "X")) == first.trace.n + second.trace.n
    origins = [answers.trace.origin_ns for answers in (first, second)]
    assert int(trace["otherData"]["origin_ns"]) == min(origins)
    for rank, (pid, _) in enumerate(sorted(devices(trace, "name").items(), key=lambda item: item[1])):
        begins = [nanoseconds(event["ts"]) for event in phase(trace, "X") if event["pid"] == pid]
        assert min(begins) == origins[rank] - min(origins)
    alone = [written(first), written(second)]
    assert not devices(alone[0]).keys() & devices(alone[1]).keys()
    for files in ([trace], alone):
        flows = [event["id"] for file in files for event in phase(file, "s")]
        assert len(flows) == len(set(flows))


def test_a_trace_of_a_rank_says_so_in_its_names() -> None:
    answers = Answers((DATA / "ps_worker0_tf2.21_cpu.pb").read_bytes(), TraceContext(rank=3))
    assert set(devices(written(answers), "name").values()) == {"rank 3 worker/0 CPU:0", "rank 3 ps/0 CPU:0"}


def test_names_that_need_escapes() -> None:
    """In JSON a name stays a name, whatever is in it."""
    names = ['quote"', "back\\slash", "new\nline", "</script>", "ünïcödé", "\x00\x1f", "tab\t"]
    trace = make_trace([N(name, "Op", i * 10_000, i * 10_000 + 5_000, inputs=("a",)) for i, name in enumerate(names)])
    exported = written(Answers(None, TraceContext(), trace=trace))
    assert [event["args"]["name"] for event in phase(exported, "X")] == names
    assert [event["args"]["input0"] for event in phase(exported, "X")] == ["a"] * len(names)


# ------------------------------------------------------------------------------------------- as an obvious version writes it


def one_by_one(answers: Answers) -> list[dict[str, Any]]:
    """The slices and arrows in their order, an event at a time."""
    trace, tracks = answers.trace, tracks_of(answers.layout)
    place = {int(node): tracks.rows[row] for node, row in zip(tracks.node, tracks.row)}
    pids = {name: pid for pid, name in devices(written(answers)).items()}
    events = [slice_of(trace, int(node), place[int(node)], pids) for node in tracks.node]
    arrows = int(next((event["id"] for event in phase(written(answers), "s")), 0))
    for made, used in zip(*(nodes.tolist() for nodes in data_edges(answers))):
        a, b = place.get(made), place.get(used)
        left, entered = int(trace.end[made]) - 1, int(trace.start[used])
        long = all(trace.end[i] > trace.start[i] for i in (made, used))
        if a is None or b is None or a is b or not long or left > entered:
            continue
        for ph, row, time, more in (("s", a, left, {}), ("f", b, entered, {"bp": "e"})):
            of_row = {"pid": pids[row.device], "tid": row.tid, "ts": time / 1000}
            events.append({"ph": ph, "cat": "DataFlow", "name": "tensor", "id": str(arrows), **of_row, **more})
        arrows += 1
    return events


def slice_of(trace: Trace, node: int, row: Row, pids: dict[str, int]) -> dict[str, Any]:
    start, end = int(trace.start[node]), int(trace.end[node])
    name, op, label = (table[code[node]] for table, code in zip(*columns_of(trace)))
    if trace.devices[trace.device[node]].kind in (DeviceKind.STREAM, DeviceKind.MEMCPY, DeviceKind.REPEAT):
        name, op = kernel_name(label, name)
        args = {"name": name, "op": op or "unknown", "label": label}
    else:
        args = {"name": name, "op": op or "unknown", **inputs_of(label)}
    of_row = {"pid": pids[row.device], "tid": row.tid, "ts": start / 1000, "dur": (end - start) / 1000}
    return {"ph": "X", "cat": "Op", **of_row, "name": args["op"], "args": args}


def columns_of(trace: Trace) -> tuple[list[StringTable], list[Any]]:
    return [trace.names, trace.ops, trace.labels], [trace.name, trace.op, trace.label]


def inputs_of(label: str) -> dict[str, str]:
    _, equals, rest = label.rpartition(" = ")
    opened, closed = rest.find("("), rest.rfind(")")
    if not equals or opened < 0 or closed < opened:
        return {"label": label} if label else {}
    inside = rest[opened + 1 : closed]
    return {f"input{i}": text for i, text in enumerate(inside.split(", "))} if inside else {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_written_in_bulk_as_one_by_one(path: Path) -> None:
    answers = answers_of(path)
    events = written(answers)["traceEvents"]
    assert [event for event in events if event["ph"] in "Xsf"] == one_by_one(answers)


odd_texts = st.one_of(
    st.text(st.sampled_from('ab/_:^0 ,()="\\\n\x00\x1fé😀'), max_size=12),
    st.sampled_from(
        ["x = Op()", "x = (a)", "x = Op(a, b)", "p = q = Op(a, ^b:1)", "Op(a) = b", "x = Op(a, b) tail", "x = Op)a("]
    ),
    st.builds(lambda inputs: f"x = Op({', '.join(inputs)})", st.lists(st.text(st.sampled_from("ab"), max_size=40), max_size=15)),
)
times = st.integers(0, 5_000)


@st.composite
def odd_nodes(draw: st.DrawFn) -> N:
    start = draw(times) * draw(st.sampled_from([1, 250, 1_000, 10**9]))
    return N(
        draw(st.sampled_from(["a", "b", "c", "name:Op", "", 'quote"', "é"])),
        draw(st.sampled_from(["Op", "", "MatMul", 'o"p'])),
        start,
        start + draw(times) * draw(st.sampled_from([0, 1, 250, 1_000])),
        draw(st.sampled_from([CPU, WORKER, GPU, STREAM, STREAM_ALL, H2D])),
        draw(st.sampled_from([NodeKind.COMPUTE, NodeKind.COMMUNICATION])),
        label=draw(odd_texts),
    )


@settings(max_examples=200, deadline=None)
@given(st.lists(odd_nodes(), max_size=12), st.sampled_from([0, 999, 1_700_000_000_000_000_000]))
def test_odd_names_labels_and_times_in_bulk_as_one_by_one(nodes: list[N], origin_ns: int) -> None:
    answers = Answers(None, TraceContext(), trace=replace(make_trace(nodes), origin_ns=origin_ns))
    events = written(answers)["traceEvents"]
    assert [event for event in events if event["ph"] in "Xsf"] == one_by_one(answers)


def test_more_events_than_are_written_at_once() -> None:
    """Loops: few names and labels, each shared by thousands; now and then one label under two names."""
    nodes = [N(f"loop/{i % 7}", "Add", 250 * i, 250 * i + 100 + i % 900, inputs=(f"loop/{i % 3}", "x")) for i in range(5_000)]
    nodes += [N(f"own/{i}", "Mul", 250 * i, 250 * i + 300, WORKER, inputs=[f"own/{i - 1}"]) for i in range(5_000)]
    nodes += [N(name, "Mul", 0, 10, label="shared = Mul(x)") for name in ("shared", "other")]
    answers = Answers(None, TraceContext(), trace=make_trace(nodes))
    events = written(answers)["traceEvents"]
    assert [event for event in events if event["ph"] in "Xsf"] == one_by_one(answers)


def test_kernels_and_copies() -> None:
    nodes = [
        N("MatMul", "MatMul", 0, 2_000, GPU, NodeKind.LAUNCH),
        N("MatMul:MatMul", "MatMul", 3_000, 9_000, STREAM, label="sgemm_128 regs:8"),
        N("x:MEMCPYHtoD", "MEMCPYHtoD", 1_000, 2_000, H2D, NodeKind.COPY, label="MEMCPYHtoD 4096 bytes", bytes_moved=4096),
    ]
    exported = written(Answers(None, TraceContext(), trace=make_trace(nodes)))
    args = [event["args"] for event in phase(exported, "X")]
    assert {"name": "MatMul", "op": "MatMul", "label": "sgemm_128 regs:8"} in args
    assert {"name": "x", "op": "MEMCPYHtoD", "label": "MEMCPYHtoD 4096 bytes"} in args


def test_what_is_missing_is_in_the_file() -> None:
    exported = written(Answers((DATA / "foreign" / "step.pb").read_bytes(), TraceContext(device_pattern="no such")))
    assert "devices_hidden" in [finding["code"] for finding in exported["otherData"]["findings"]]
    assert not phase(exported, "X")


def test_what_we_write_we_can_open() -> None:
    path = DATA / "ps_worker0_tf2.21_cpu.pb"
    file = io.BytesIO()
    write_chrome_traces([("", answers_of(path))], file)
    again = open_bytes(file.getvalue()).runs[0].traces[0].raw
    expected = [entry for entry in as_tensorflow_reads(path) if entry[2] != "unknown"]

    def keys(entries: list[Any]) -> list[Any]:
        return sorted(entry[:2] + entry[3:5] for entry in entries)

    message = message_class("RunMetadata").FromString(again)
    opened = [
        (device.device, node.node_name, "", node.all_start_micros, node.all_end_rel_micros)
        for device in message.step_stats.dev_stats
        for node in device.node_stats
    ]
    assert keys(opened) == keys(expected)
