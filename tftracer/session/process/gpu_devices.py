"""The names and compute capabilities of this process's GPUs, as TensorFlow tells them.

Asked only once TensorFlow uses its GPUs, so that nothing is initialized for the question. It takes a few milliseconds: not for a
training thread.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from tftracer.contract.machine import GpuDevice


def gpu_devices(kind: str = "GPU", modules: Mapping[str, Any] = sys.modules) -> list[GpuDevice]:
    """By their numbers; empty where there are none, and where TensorFlow does not tell.

    kind: TensorFlow's type of device. modules: where TensorFlow is found, which is not imported.
    """
    if "tensorflow" not in modules:
        return []
    try:
        config = modules["tensorflow"].config
        return [_device(config.experimental.get_device_details(device)) for device in config.list_physical_devices(kind)]
    except Exception:  # whatever TensorFlow raises where it cannot tell: a trace is worth as much without
        return []


def _device(details: Mapping[str, Any]) -> GpuDevice:
    capability = details.get("compute_capability") or ()
    return {
        "name": str(details.get("device_name", "")),
        "compute_capability": ".".join(map(str, capability)) if isinstance(capability, tuple) else str(capability),
    }
