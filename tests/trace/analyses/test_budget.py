"""The budget: against a walk over every moment, on random steps, and on steps small enough to check by eye."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from traces import CPU, GPU, H2D, PS, STREAM, STREAM_ALL, WORKER, N, make_trace, received

from tftracer.trace.analyses.budget import PARTS, budget
from tftracer.trace.model import NodeKind


def naive(nodes: list[N], devices: set[str], gpu: bool) -> dict[str, int | None]:
    """Moment by moment: the first part that holds. Nodes on GPU are launches where ``gpu``."""
    step = max(n.end for n in nodes)
    parts = dict.fromkeys([*PARTS, "hidden_communication"], 0)
    mine = [n for n in nodes if n.device in devices and n.kind is not NodeKind.REPEAT]
    python = [n for n in mine if n.op == "PyFunc"]
    for t in range(step):
        running = [n for n in mine if n.start <= t < n.end]
        launches = [n for n in running if gpu and n.device == GPU and n.kind is not NodeKind.COMMUNICATION]
        calls_python = any(n in python for n in running)
        kinds = {n.kind for n in running if n not in launches and n not in python}
        waits = any(n.scheduled >= 0 and n.scheduled <= t < n.start for n in mine)
        computes = bool(kinds & {NodeKind.COMPUTE, NodeKind.CONTROL, NodeKind.LAUNCH})
        communicates = NodeKind.COMMUNICATION in kinds
        parts["hidden_communication"] += computes and communicates
        holds = [
            computes,
            calls_python,
            communicates,
            NodeKind.COPY in kinds,
            NodeKind.INPUT in kinds,
            bool(launches),
            waits,
            True,
        ]
        parts[PARTS[holds.index(True)]] += 1
    return {**parts, **({} if any(n.scheduled >= 0 for n in mine) else {"scheduling": None})}


KINDS = st.sampled_from([NodeKind.COMPUTE, NodeKind.COMMUNICATION, NodeKind.COPY, NodeKind.INPUT, NodeKind.CONTROL])


@st.composite
def steps(draw: st.DrawFn) -> list[N]:
    nodes = []
    for i in range(draw(st.integers(1, 14))):
        device = draw(st.sampled_from([CPU, GPU, STREAM, H2D, STREAM_ALL]))
        start = draw(st.integers(0, 30))
        kind = NodeKind.REPEAT if device == STREAM_ALL else NodeKind.COPY if device == H2D else draw(KINDS)
        scheduled = draw(st.integers(-1, start))
        op = "PyFunc" if kind is NodeKind.INPUT and draw(st.booleans()) else "Op"
        nodes.append(N(f"n{i}", op, start, start + draw(st.integers(0, 9)), device, kind, scheduled))
    return nodes


@given(steps())
def test_equal_to_a_walk_over_the_moments(nodes: list[N]) -> None:
    answer = budget(make_trace(nodes), [])
    gpu = any(n.device in (STREAM, H2D) for n in nodes)
    for part in answer["devices"]:
        names = {CPU} if "CPU" in part["title"] else {GPU, STREAM, H2D, STREAM_ALL}
        assert part["parts_ns"] == naive(nodes, names, gpu)
    assert answer["whole"]["parts_ns"] == naive(nodes, {CPU, GPU, STREAM, H2D, STREAM_ALL}, gpu)


@given(steps())
def test_adds_up_to_the_step(nodes: list[N]) -> None:
    answer = budget(make_trace(nodes), [])
    for part in [answer["whole"], *answer["devices"]]:
        assert sum(part["parts_ns"][p] or 0 for p in PARTS) == answer["step_ns"] == max(n.end for n in nodes)
        assert part["parts_ns"]["hidden_communication"] <= part["parts_ns"]["compute"]


def parts(device: Any) -> dict[str, float]:
    return {k: v for k, v in device["parts_ns"].items() if v}


def test_a_gpu_step_by_hand() -> None:
    trace = make_trace(
        [
            N("x", "Const", 0, 10, CPU),
            N("m", "MatMul", 10, 30, GPU, NodeKind.LAUNCH),
            N("m", "MatMul", 20, 60, STREAM),
            N("m", "MatMul", 20, 60, STREAM_ALL, NodeKind.REPEAT),
            N("x:MEMCPYHtoD", "MEMCPY", 62, 70, H2D, NodeKind.COPY),
            N("n", "NoOp", 75, 80, CPU, scheduled=72),
        ]
    )
    answer = budget(trace, [])
    cpu, gpu = answer["devices"]
    assert (cpu["title"], gpu["title"]) == ("CPU:0", "GPU:0")
    assert parts(cpu) == {"compute": 15, "scheduling": 3, "idle": 62}
    assert parts(gpu) == {"compute": 40, "copies": 8, "launch_gap": 10, "idle": 22}
    assert parts(answer["whole"]) == {"compute": 55, "copies": 8, "launch_gap": 10, "scheduling": 3, "idle": 4}
    assert gpu["busy_ns"] == 48


def test_launches_stand_for_the_work_of_a_gpu_without_kernels() -> None:
    trace = make_trace([N("m", "MatMul", 0, 10, GPU, NodeKind.LAUNCH)])
    assert parts(budget(trace, [])["devices"][0]) == {"compute": 10}


def test_communication_is_exposed_where_its_own_device_runs_nothing() -> None:
    trace = make_trace([received("w", 0, 50, 400), N("m", "MatMul", 20, 30, WORKER), N("v", "ReadVariableOp", 0, 5, PS)])
    worker, ps = budget(trace, [])["devices"]
    assert parts(worker) == {"compute": 10, "exposed_communication": 40, "hidden_communication": 10}
    assert parts(ps) == {"compute": 5, "idle": 45}


def test_a_python_function_of_the_step_is_neither_compute_nor_input() -> None:
    nodes = [N("f", "EagerPyFunc", 0, 6, kind=NodeKind.INPUT), N("next", "IteratorGetNext", 5, 10, kind=NodeKind.INPUT)]
    (device,) = budget(make_trace(nodes), [])["devices"]
    assert (parts(device), device["busy_ns"]) == ({"python": 6, "input": 4}, 10)


def test_an_empty_trace_has_an_empty_budget() -> None:
    answer = budget(make_trace([]), [])
    assert answer["step_ns"] == 0 and answer["devices"] == []
    assert not any(answer["whole"]["parts_ns"].values())


def test_a_step_of_nodes_without_a_time_has_no_length() -> None:
    answer = budget(make_trace([N("a", "A", -1, -1)]), [])
    assert answer["step_ns"] == 0 and not any(answer["whole"]["parts_ns"].values())
