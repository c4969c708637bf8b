"""The hardware that a process runs on, and its measured rates."""

from __future__ import annotations

from typing import TypedDict


class GpuDevice(TypedDict):
    """One GPU, as TensorFlow describes it."""

    name: str  # "Tesla V100-SXM2-16GB"; "" where not known
    compute_capability: str  # "7.0"; "" where not known


class MeasuredRate(TypedDict):
    """The fastest matrix product of one type of number."""

    dtype: str  # "float32"
    flops_per_s: float
    by: str  # "NumPy 1.26.4", "TensorFlow 2.15.1"


class MeasuredDevice(TypedDict):
    kind: str  # "CPU", "GPU"
    title: str  # "AMD EPYC 7B13, 2 cores"
    rates: list[MeasuredRate]
    bytes_per_s: float | None  # of memory, read and written together; None: not measured


class MeasuredRoof(TypedDict):
    """The rates that ``tftracer roof --save`` measured on a machine."""

    host: str
    processor: str  # its model
    measured_at: float  # epoch seconds
    doubt: str  # why the rates may be too low, "" for no reason
    devices: list[MeasuredDevice]
