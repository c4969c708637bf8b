"""The peak rates of a device, from its descriptions by the trace and by TensorFlow.

A rate is the FLOPs of one multiprocessor per clock cycle, by compute capability, times the number of multiprocessors, times the
clock rate. A multiply and an add are two FLOPs. Rates are for dense matrices: tensor cores are twice as fast with matrices
in which half of the elements are zero, in the pattern that they support.

Sources. NVIDIA, CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions", for the cores; for tensor cores the
architectures' white papers (Volta, Turing, Ampere GA100 and GA102, Ada, Hopper H100): each rate is chosen so that the whole
GPU reaches the paper's figure. AMD, CDNA 3 white paper, for gfx942 (MI300), which AMD's profiler calls 9.4. Multiprocessors,
boost clocks and bandwidths of GPUs by name come from their data sheets.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tftracer.contract.machine import GpuDevice


@dataclass(frozen=True)
class Hardware:
    """A trace's description of a device. None or "": not in the trace."""

    vendor: str = ""  # "Nvidia", "AMD"
    compute_capability: str = ""  # "7.0"
    multiprocessors: int | None = None
    clock_hz: float | None = None
    bytes_per_s: float | None = None  # rate of its memory


@dataclass(frozen=True)
class Peak:
    """The highest rate for one type of number."""

    dtype: str  # type of the numbers that are multiplied
    unit: str  # part of the device: "" for the cores, "tensor cores", "tensor cores as TF32", "matrix cores" (AMD's)
    flops_per_s: float


@dataclass(frozen=True)
class Peaks:
    """A device's limits. ``words`` describe the device; without peaks, they say why there are none."""

    words: str
    peaks: list[Peak] = field(default_factory=list)
    bytes_per_s: float | None = None


#: FLOPs of a multiprocessor per clock cycle without tensor cores: (float64, float32, float16); 0: not used by TensorFlow.
_CORES: dict[str, tuple[int, int, int]] = {
    "5.2": (8, 256, 0),
    "6.0": (64, 128, 256),
    "6.1": (8, 256, 0),
    "7.0": (64, 128, 256),
    "7.5": (4, 128, 256),
    "8.0": (64, 128, 512),
    "8.6": (4, 256, 256),
    "8.9": (4, 256, 256),
    "9.0": (128, 256, 512),
}
#: The same with tensor cores, which sum in float32: (float64, float32 as TF32, float16, bfloat16).
_TENSOR_CORES: dict[str, tuple[int, int, int, int]] = {
    "7.0": (0, 0, 1024, 0),
    "7.5": (0, 0, 1024, 0),
    "8.0": (128, 1024, 2048, 2048),
    "8.6": (0, 512, 1024, 1024),
    "8.9": (0, 512, 1024, 1024),
    "9.0": (256, 2048, 4096, 4096),
}
_AMD_CORES = {"9.4": (128, 256, 0)}
_AMD_MATRIX_CORES = {"9.4": (256, 256, 2048, 2048)}
#: Compute capabilities whose GeForce cards have half of the rates in _TENSOR_CORES: their sums in float32 take twice as long.
_HALVED = ("7.5", "8.6", "8.9")

#: Multiprocessors, MHz and GB/s, for traces that lack them.
_BY_NAME = {
    "Tesla P100-SXM2-16GB": (56, 1480, 732),
    "Tesla P100-PCIE-16GB": (56, 1303, 732),
    "Tesla V100-SXM2-16GB": (80, 1530, 898),
    "Tesla V100-SXM2-32GB": (80, 1530, 898),
    "Tesla V100-PCIE-16GB": (80, 1380, 898),
    "Tesla V100-PCIE-32GB": (80, 1380, 898),
    "Tesla T4": (40, 1590, 320),
    "A100-SXM4-40GB": (108, 1410, 1555),
    "A100-SXM4-80GB": (108, 1410, 2039),
    "A100-PCIE-40GB": (108, 1410, 1555),
    "A100 80GB PCIe": (108, 1410, 1935),
    "L4": (58, 2040, 300),
    "L40S": (142, 2520, 864),
    "H100 80GB HBM3": (132, 1980, 3352),
    "H100 PCIe": (114, 1755, 2039),
    "GeForce RTX 3090": (82, 1695, 936),
    "GeForce RTX 4090": (128, 2520, 1008),
}
_DTYPES = ("float64", "float32", "float16", "bfloat16")


def peaks_of(hardware: Hardware | None, device: GpuDevice | None = None) -> Peaks:
    """Look up the peaks of a GPU. ``hardware``: the trace's description of it; ``device``: TensorFlow's."""
    known = hardware or Hardware()
    name = device["name"] if device else ""
    capability = known.compute_capability or (device["compute_capability"] if device else "")
    if not capability:
        return Peaks("Neither the trace nor TensorFlow says which GPU this is.")
    is_amd = known.vendor.upper().startswith("AMD") or name.startswith("AMD")
    if not is_amd and not known.vendor and not name and capability.startswith("9."):
        return Peaks(f"The trace does not say who made this GPU of compute capability {capability}.")
    cores, tensor_cores = (_AMD_CORES, _AMD_MATRIX_CORES) if is_amd else (_CORES, _TENSOR_CORES)
    if capability not in cores:
        maker = "AMD GPU" if is_amd else "GPU"
        return Peaks(f"The table of peak rates has no {maker} of compute capability {capability}. Measure it: tftracer roof.")
    size = _multiprocessors_and_clock(known, name)
    if size is None:
        return Peaks(f"Neither the trace nor the table says how many multiprocessors {name or 'this GPU'} has, nor its clock.")
    multiprocessors, clock_hz = size
    per_second = multiprocessors * clock_hz
    halved = "GeForce" in name and capability in _HALVED
    peaks = _peaks(cores[capability], per_second, "")
    peaks += _peaks(
        tensor_cores.get(capability, ()), per_second / (2 if halved else 1), "matrix cores" if is_amd else "tensor cores"
    )
    words = f"{name or known.vendor or 'GPU'}, compute capability {capability}, {multiprocessors} multiprocessors at "
    return Peaks(f"{words}{clock_hz / 1e9:.2f} GHz", peaks, _bandwidth(known, name, is_amd))


def _peaks(per_clock: tuple[int, ...], per_second: float, unit: str) -> list[Peak]:
    """Return the peaks of one unit. ``per_clock``: FLOPs by ``_DTYPES``; ``per_second``: multiprocessors times clock in Hz."""
    rates = [(dtype, flops * per_second) for dtype, flops in zip(_DTYPES, per_clock) if flops]
    return [
        Peak(dtype, f"{unit} as TF32" if (dtype, unit) == ("float32", "tensor cores") else unit, rate) for dtype, rate in rates
    ]


def _multiprocessors_and_clock(known: Hardware, name: str) -> tuple[int, float] | None:
    """Return (number of multiprocessors, clock in Hz); None if they are not known."""
    if known.multiprocessors and known.clock_hz:
        return known.multiprocessors, known.clock_hz
    row = _row_by_name(name)
    return (row[0], row[1] * 1e6) if row else None


def _bandwidth(known: Hardware, name: str, is_amd: bool) -> float | None:
    """Return the bytes per second of the memory. For AMD's GPUs the profiler's value is not used.

    The profiler reports half of the data sheet's bandwidth there (MI300X: 2.66 of 5.3 TB/s).
    """
    if known.bytes_per_s and not is_amd:
        return known.bytes_per_s
    row = _row_by_name(name)
    return row[2] * 1e9 if row else None


def _row_by_name(name: str) -> tuple[int, int, int] | None:
    return _BY_NAME.get(name.removeprefix("NVIDIA "))
