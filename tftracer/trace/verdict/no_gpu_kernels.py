"""Find out why a trace has no GPU kernels: one finding per cause, with its remedy. Only observed causes are named."""

from __future__ import annotations

from collections.abc import Iterator

from tftracer.contract.basics import Finding
from tftracer.trace.model import DeviceKind, Trace, TraceContext
from tftracer.trace.units import counted
from tftracer.trace.verdict.findings import finding

#: Trace levels at which TensorFlow records what runs on a GPU.
GPU_LEVELS = ("FULL_TRACE", "HARDWARE_TRACE")

#: Values of CUDA_VISIBLE_DEVICES that hide all GPUs.
NO_DEVICES = ("", "-1", "NoDevFiles")

LAUNCHES_ONLY = (
    "Ops ran on a GPU, but the trace has none of its kernels and copies: what is shown on the GPU are launches on the host, "
    "shorter than the work itself."
)


def gpu_findings(trace: Trace, context: TraceContext) -> Iterator[Finding]:
    kinds = {device.kind for device in trace.devices}
    if not trace.n or kinds & {DeviceKind.STREAM, DeviceKind.MEMCPY, DeviceKind.REPEAT}:
        return
    if DeviceKind.GPU in kinds:
        yield _no_kernels(context, next((note for note in trace.notes if note.startswith("profiler_errors")), ""))
    elif context.gpus:
        yield finding(
            "gpu_unused",
            "info",
            f"TensorFlow sees {counted(context.gpus, 'GPU')}, but no op of this step ran on one.",
            "If that is not what you want, see why with ConfigProto(log_device_placement=True): a tf.device(...) scope, or "
            "ops and types that have no GPU kernel.",
        )
    elif context.gpus == 0 and not context.distributed:
        yield from _no_gpu(context)


def _no_kernels(context: TraceContext, errors: str) -> Finding:
    """Name the most important known cause, if there is one. ``errors``: the errors that a profile records; "" if none."""
    facts = context.gpu_facts
    if context.trace_level and context.trace_level not in GPU_LEVELS:
        return finding(
            "gpu_trace_level",
            "warning",
            f"{LAUNCHES_ONLY} The step was traced with {context.trace_level}, which records no kernels.",
            "Trace with trace_level=FULL_TRACE.",
        )
    if context.distributed:
        return finding(
            "gpu_distributed",
            "warning",
            f"{LAUNCHES_ONLY} The session is a distributed one (a grpc target), and TensorFlow records kernels and copies in "
            "local sessions only.",
            "Run one process with a local session (no target, or Horovod) to see its kernels.",
        )
    if "Failed to load libcupti" in errors or (facts.get("build") == "cuda" and facts.get("libcupti_loaded") == ""):
        return _no_libcupti(facts.get("libcupti_file", ""), facts.get("cuda_version", ""))
    refused = "Insufficient privilege" in errors
    if refused or facts.get("restricted"):
        return _restricted(refused)
    loaded = facts.get("libcupti_loaded")
    state = f"libcupti is loaded ({loaded})" if loaded else "nothing is known of libcupti"
    load = "" if loaded else "'Could not load libcupti': put its folder on LD_LIBRARY_PATH before Python starts. "
    return finding(
        "no_gpu_events",
        "warning",
        f"{LAUNCHES_ONLY} The reason is not known: {state}.",
        f"Look in TensorFlow's log, at the traced step, for one of these errors. {load}"
        "'CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED': another profiler (Nsight, tf.profiler) was active. "
        "'CUPTI_ERROR_INSUFFICIENT_PRIVILEGES': allow profiling (NVreg_RestrictProfilingToAdminUsers=0). "
        "On ROCm: see whether libroctracer64 can be loaded.",
    )


def _no_libcupti(file: str, cuda_version: str) -> Finding:
    if file:
        where = f"There is {file}, which the process did not load."
        folder = file.rpartition("/")[0]
        remedy = f"Before Python starts, put its folder on the loader's path: export LD_LIBRARY_PATH={folder}:$LD_LIBRARY_PATH"
    else:
        of_cuda = f" of CUDA {cuda_version}" if cuda_version else ""
        where = f"No libcupti{of_cuda} was found on LD_LIBRARY_PATH, next to TensorFlow or in CUDA's folders."
        remedy = (
            "Install libcupti for TensorFlow's CUDA version (pip install nvidia-cuda-cupti-cu12, or CUDA's extras/CUPTI) and "
            "start Python again."
        )
    return finding(
        "no_libcupti",
        "warning",
        f"{LAUNCHES_ONLY} TensorFlow records kernels and copies through libcupti, which is not loaded. {where}",
        remedy,
    )


def _restricted(refused: bool) -> Finding:
    why = (
        "TensorFlow's profiler reports: insufficient privilege to run libcupti."
        if refused
        else "The NVIDIA driver lets only administrators profile (RmProfilingAdminOnly: 1), and this process is not privileged. "
        "That may be the reason: TensorFlow's log then says CUPTI_ERROR_INSUFFICIENT_PRIVILEGES."
    )
    return finding(
        "gpu_profiling_restricted",
        "warning",
        f"{LAUNCHES_ONLY} {why}",
        "Load the NVIDIA kernel module with NVreg_RestrictProfilingToAdminUsers=0, or give the process CAP_SYS_ADMIN (for a "
        "container: --cap-add=SYS_ADMIN). CUDA 10.2 and later need that for hardware counters only.",
    )


def _no_gpu(context: TraceContext) -> Iterator[Finding]:
    """Say why a process that should see a GPU sees none."""
    facts = context.gpu_facts
    build, driver = facts.get("build"), facts.get("driver")
    if facts.get("visible_devices") in NO_DEVICES:
        return
    if build == "cuda" and driver is False:
        yield finding(
            "no_gpu_driver",
            "info",
            "TensorFlow is built for NVIDIA GPUs, but this process finds no NVIDIA driver: all ops ran on the CPU.",
            "If the machine has no GPU, nothing is wrong. If it has one: install the driver, so that nvidia-smi lists the GPU; "
            "start containers with --gpus all.",
        )
    elif build == "cuda" and driver:
        yield finding(
            "no_gpu_seen",
            "info",
            "The NVIDIA driver is there and TensorFlow is built for it, but TensorFlow sees no GPU: all ops ran on the CPU.",
            "See whether nvidia-smi lists a GPU, and look in TensorFlow's log for 'Cannot dlopen some GPU libraries': install "
            "the libraries of its CUDA version (pip install tensorflow[and-cuda]).",
        )
    elif build == "cpu" and driver:
        yield finding(
            "tensorflow_without_cuda",
            "info",
            "The machine has an NVIDIA driver, but this TensorFlow is built without CUDA: all ops ran on the CPU.",
            "To use the GPU, install a build for it (pip install tensorflow[and-cuda] instead of tensorflow-cpu).",
        )
