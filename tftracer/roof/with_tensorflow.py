"""Measures the rates of TensorFlow's matrix products on the processor and on the first GPU, if TensorFlow is installed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from tftracer.contract.machine import MeasuredDevice, MeasuredRate
from tftracer.roof.with_numpy import best_of_sizes, best_rate

DTYPES = ("float64", "float32", "bfloat16", "float16")
CPU_SIZES = (512, 1024, 2048)
GPU_SIZES = (2048, 4096, 8192)
GPU_COPIED_BYTES = 1 << 30


def tensorflow() -> Any:
    """Import TensorFlow, with memory growth on GPUs; return None if it cannot be imported."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        tf = importlib.import_module("tensorflow")
        for device in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(device, True)
    except Exception:  # a broken installation may raise anything
        return None
    return tf


def matrix_rates(tf: Any, device: str, seconds: float) -> list[MeasuredRate]:
    """Measure matrix products. ``seconds``: per type of number; types that the device does not support are left out."""
    sizes = GPU_SIZES if device.startswith("GPU") else CPU_SIZES
    rates: list[MeasuredRate] = []
    for dtype in DTYPES:
        try:
            rate = best_of_sizes(lambda size, dtype=dtype: _product(tf, device, dtype, size), sizes, seconds)  # type: ignore[misc]
        except tf.errors.OpError:  # no kernel for the type, or no memory
            continue
        rates.append({"dtype": dtype, "flops_per_s": rate, "by": f"TensorFlow {tf.__version__}"})
    return rates


def _product(tf: Any, device: str, dtype: str, size: int) -> tuple[Callable[[], object], float]:
    with tf.device(device):
        a, b = (tf.ones((size, size), dtype) for _ in range(2))

    def multiply() -> object:
        with tf.device(device):
            return tf.matmul(a, b)[0, 0].numpy()  # waits for the device

    return multiply, 2.0 * size**3


def gpu(tf: Any, seconds: float) -> MeasuredDevice | None:
    """Measure the first GPU; return None if TensorFlow sees none."""
    devices = tf.config.list_physical_devices("GPU")
    if not devices:
        return None
    name = tf.config.experimental.get_device_details(devices[0]).get("device_name", "")
    rates = matrix_rates(tf, "GPU:0", seconds)
    return {"kind": "GPU", "title": name or "GPU:0", "rates": rates, "bytes_per_s": _copy_rate(tf, seconds)}


def _copy_rate(tf: Any, seconds: float) -> float | None:
    try:
        with tf.device("GPU:0"):
            numbers = tf.ones(GPU_COPIED_BYTES // 4, tf.float32)

        def negate() -> object:  # a plain copy would share the memory
            with tf.device("GPU:0"):
                return tf.negative(numbers)[0].numpy()

        return best_rate(negate, 2.0 * GPU_COPIED_BYTES, seconds)
    except tf.errors.OpError:
        return None
