"""Measures the processor with NumPy: matrix products, and copies by as many threads as there are cores."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

import numpy as np

from tftracer.contract.machine import MeasuredRate

#: The types that are measured. For other types, NumPy's products do not use the libraries that make these types fast.
DTYPES = ("float32", "float64")
SIZES = (512, 1024, 2048, 4096)
#: Number of bytes that are copied: far more than caches hold. Fewer are copied only if memory is short.
COPIED_BYTES = 256 << 20

_GROWTH = 8.0  # factor by which a product's work grows when its size doubles


def best_rate(work: Callable[[], object], amount: float, seconds: float) -> float:
    """Repeat the work for ``seconds``, after a warm-up. Return the ``amount`` of work per second of the fastest repetition."""
    work()
    best, end = 0.0, perf_counter() + seconds
    while True:
        start = perf_counter()
        work()
        now = perf_counter()
        best = max(best, amount / max(now - start, 1e-9))
        if now >= end:
            return best


def best_of_sizes(work_of: Callable[[int], tuple[Callable[[], object], float]], sizes: tuple[int, ...], seconds: float) -> float:
    """Return the best rate over the sizes, which double. Stop if one repetition at the next size would exceed ``seconds``.

    ``work_of``: size -> (function to repeat, amount of its work).
    """
    best = 0.0
    for size in sizes:
        work, amount = work_of(size)
        rate = best_rate(work, amount, seconds / len(sizes))
        best = max(best, rate)
        if amount * _GROWTH / rate > seconds:
            break
    return best


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def matrix_rates(seconds: float) -> list[MeasuredRate]:
    """Measure matrix products. ``seconds``: per type of number."""
    by = f"NumPy {np.__version__}"
    return [{"dtype": dtype, "flops_per_s": _matrix_rate(dtype, seconds), "by": by} for dtype in DTYPES]


def _matrix_rate(dtype: str, seconds: float) -> float:
    def product(size: int) -> tuple[Callable[[], object], float]:
        a, b, out = (np.ones((size, size), dtype) for _ in range(3))
        return lambda: np.matmul(a, b, out=out), 2.0 * size**3

    return best_of_sizes(product, SIZES, seconds)


def copy_rate(seconds: float) -> float:
    """Copy large arrays; return the bytes per second, read and written bytes together."""
    size = min(COPIED_BYTES, _free_bytes() // 8) // 8 * 8
    source, target = (np.full(size // 8, value, np.float64) for value in (1.0, 0.0))
    edges = np.linspace(0, len(source), cores() + 1).astype(int).tolist()
    spans = [slice(low, high) for low, high in zip(edges, edges[1:])]
    with ThreadPoolExecutor(len(spans)) as pool:

        def copy() -> None:
            list(pool.map(lambda span: np.copyto(target[span], source[span]), spans))

        return best_rate(copy, 2.0 * source.nbytes, seconds)


def _free_bytes() -> int:
    """Return the bytes that are available without swapping; if not known, as many as a copy of COPIED_BYTES needs."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError):
        pass
    return COPIED_BYTES * 8
