"""The hardware that a process runs on, and its measured rates."""

from __future__ import annotations

from typing import TypedDict


class GpuDevice(TypedDict):
    """One GPU, as TensorFlow describes it."""

    name: str  # "Tesla V100-SXM2-16GB"; "" if not known
    compute_capability: str  # "7.0"; "" if not known


class MeasuredRate(TypedDict):
    """The fastest matrix product of one type of number."""

    dtype: str  # "float32"
    flops_per_s: float
    by: str  # the library that reached it: "NumPy 1.26.4", "TensorFlow 2.15.1"


class MeasuredDevice(TypedDict):
    kind: str  # "CPU", "GPU"
    title: str  # "AMD EPYC 7B13, 2 cores"
    rates: list[MeasuredRate]
    bytes_per_s: float | None  # memory bandwidth, read and written bytes together; None: not measured


class MeasuredRoof(TypedDict):
    """The rates that ``tftracer roof --save`` measured on a machine."""

    host: str
    processor: str  # model of the CPU
    measured_at: float  # epoch seconds
    doubt: str  # why the rates may be too low; "" if there is no doubt
    devices: list[MeasuredDevice]
