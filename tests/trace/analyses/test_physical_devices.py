"""Physical devices, processes, and kernels joined to their launches."""

from __future__ import annotations

from traces import CPU, GPU, H2D, PS, STREAM, STREAM_ALL, WORKER, N, make_trace

from tftracer.trace.analyses.launch_of_kernel import launch_of
from tftracer.trace.analyses.physical_devices import members, physical_devices, processes
from tftracer.trace.model import NodeKind, Trace

WORKER_GPU = "/job:worker/replica:0/task:0/device:GPU:0"
PS_GPU = "/job:ps/replica:0/task:0/device:GPU:0"


def on(*devices: str) -> Trace:
    repeats = [NodeKind.REPEAT if d == STREAM_ALL else NodeKind.COMPUTE for d in devices]
    return make_trace([N(f"n{i}", "Op", i, i + 1, d, kind) for i, (d, kind) in enumerate(zip(devices, repeats))])


def test_a_gpu_is_one_device_under_all_its_names() -> None:
    trace = on(CPU, GPU, STREAM, H2D, STREAM_ALL)
    groups = physical_devices(trace)
    assert [(g.key, g.title, g.codes) for g in groups] == [(CPU, "CPU:0", [0]), (GPU, "GPU:0", [1, 2, 3, 4])]
    assert members(trace, groups[1]).tolist() == [False, True, True, True, False]


def test_streams_of_one_of_two_gpus_are_on_their_own() -> None:
    groups = physical_devices(on(WORKER_GPU, PS_GPU, STREAM))
    assert [g.key for g in groups] == [WORKER_GPU, PS_GPU, "/device:GPU:0"]


def test_processes() -> None:
    groups = processes(on(PS, WORKER, WORKER_GPU, STREAM))
    assert [(p.title, p.codes) for p in groups] == [("ps/0", [0]), ("worker/0", [1, 2, 3])]
    assert [p.title for p in processes(on(CPU, GPU, STREAM))] == ["this process"]
    assert [p.title for p in processes(on(STREAM))] == ["this process"]


def test_each_kernel_is_joined_to_the_last_launch_of_its_name() -> None:
    nodes = [
        N("m", "MatMul", 0, 5, GPU, NodeKind.LAUNCH),
        N("m", "MatMul", 50, 55, GPU, NodeKind.LAUNCH),
        N("m", "MatMul", 3, 40, STREAM),
        N("m:other", "MatMul", 60, 70, STREAM),
        N("m", "MatMul", 60, 70, STREAM_ALL, NodeKind.REPEAT),
        N("x", "fusion", 70, 71, STREAM),
        N("late", "Relu", 80, 81, GPU, NodeKind.LAUNCH),
        N("late", "Relu", 79, 82, STREAM),
    ]
    assert launch_of(make_trace(nodes)).tolist() == [-1, -1, 0, 1, -1, -1, -1, 6]
