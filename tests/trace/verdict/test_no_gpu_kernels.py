"""Why a trace has no GPU kernels: each cause has a finding of its own, with its remedy, and nothing is guessed."""

from __future__ import annotations

from typing import Any

import pytest
from traces import CPU, GPU, STREAM, N, make_trace

from tftracer.trace.model import GpuFacts, NodeKind, TraceContext
from tftracer.trace.verdict.no_gpu_kernels import gpu_findings

ON_CPU = [N("a", "MatMul", 1, 5, CPU)]
ON_GPU = [N("a", "MatMul", 1, 5, GPU, NodeKind.LAUNCH)]
CUDA = GpuFacts(build="cuda", cuda_version="12.2", driver=True, libcupti_loaded="/x/libcupti.so.12", restricted=False)


def found(nodes: list[N], facts: GpuFacts | None = None, **context: Any) -> list[tuple[str, str]]:
    """(code, message and remedy) of each finding."""
    trace = make_trace(nodes)
    findings = gpu_findings(trace, TraceContext(gpu_facts=facts or GpuFacts(), **context))
    return [(f["code"], f"{f['message']} {f['remedy']}") for f in findings]


@pytest.mark.parametrize(
    ("code", "facts", "context", "words"),
    [
        ("gpu_trace_level", CUDA, {"trace_level": "SOFTWARE_TRACE"}, ["SOFTWARE_TRACE", "trace_level=FULL_TRACE"]),
        ("gpu_distributed", CUDA, {"distributed": True, "trace_level": "FULL_TRACE"}, ["grpc", "Horovod"]),
        (
            "no_libcupti",
            {**CUDA, "libcupti_loaded": "", "libcupti_file": ""},
            {},
            ["No libcupti of CUDA 12.2 was found", "pip install nvidia-cuda"],
        ),
        (
            "no_libcupti",
            {**CUDA, "libcupti_loaded": "", "libcupti_file": "/c/lib64/libcupti.so.12"},
            {},
            ["There is /c/lib64/libcupti.so.12", "LD_LIBRARY_PATH=/c/lib64:"],
        ),
        (
            "gpu_profiling_restricted",
            {**CUDA, "restricted": True},
            {},
            ["may be the reason", "NVreg_RestrictProfilingToAdminUsers=0", "CAP_SYS_ADMIN"],
        ),
        (
            "no_gpu_events",
            CUDA,
            {"trace_level": "FULL_TRACE"},
            ["The reason is not known: libcupti is loaded (/x/libcupti.so.12)"],
        ),
        ("no_gpu_events", {}, {}, ["The reason is not known: nothing is known of libcupti"]),
        ("no_gpu_events", {"build": "rocm", "libcupti_loaded": ""}, {}, ["roctracer"]),
    ],
)
def test_launches_without_kernels_say_why(code: str, facts: Any, context: dict[str, Any], words: list[str]) -> None:
    ((seen, said),) = found(ON_GPU, facts, **context)
    assert seen == code
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    ("code", "facts", "words"),
    [
        ("no_gpu_driver", {"build": "cuda", "driver": False}, ["no NVIDIA driver", "nvidia-smi"]),
        ("no_gpu_seen", {"build": "cuda", "driver": True}, ["sees no GPU", "Cannot dlopen some GPU libraries"]),
        ("tensorflow_without_cuda", {"build": "cpu", "driver": True}, ["built without CUDA", "tensorflow[and-cuda]"]),
    ],
)
def test_a_step_that_used_no_gpu_says_why_where_one_could_be_expected(code: str, facts: Any, words: list[str]) -> None:
    ((seen, said),) = found(ON_CPU, facts, gpus=0)
    assert seen == code
    for word in words:
        assert word in said


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"build": "cpu", "driver": False},
        {"build": "cuda"},
        {"build": "cuda", "driver": False, "visible_devices": "-1"},
        {"build": "cuda", "driver": True, "visible_devices": ""},
    ],
)
def test_a_step_on_a_machine_without_a_gpu_or_that_hides_it_has_no_finding(facts: Any) -> None:
    assert found(ON_CPU, facts, gpus=0) == []


@pytest.mark.parametrize(
    ("message", "code", "words"),
    [
        ("Failed to load libcupti (is it installed and accessible?)", "no_libcupti", "pip install nvidia-cuda"),
        (
            "Insufficient privilege to run libcupti (you need root permission).",
            "gpu_profiling_restricted",
            "TensorFlow's profiler reports: insufficient privilege",
        ),
    ],
)
def test_a_profile_says_itself_why_it_has_no_kernels(message: str, code: str, words: str) -> None:
    """The messages of TensorFlow 2.15's GPU build, which it puts into the profile."""
    trace = make_trace(ON_GPU)
    trace.notes, trace.source = [f"profiler_errors: {message}"], "xspace"
    (finding,) = gpu_findings(trace, TraceContext())
    assert finding["code"] == code and words in f"{finding['message']} {finding['remedy']}"


def test_a_gpu_that_this_step_does_not_use() -> None:
    ((code, said),) = found(ON_CPU, CUDA, gpus=2)
    assert code == "gpu_unused" and "2 GPUs, but no op of this step ran on one" in said


def test_nothing_is_missed_where_there_are_kernels_or_nothing_is_known() -> None:
    assert found([*ON_GPU, N("a", "MatMul", 3, 9, STREAM)], CUDA, gpus=1) == []
    assert found(ON_CPU, {"build": "cuda", "driver": False}) == []  # a file that says nothing of GPUs
    assert found([], CUDA, gpus=1) == []
