"""Finds out whether this process can record GPU kernels, as far as that can be seen from outside TensorFlow.

TensorFlow records them with NVIDIA's CUPTI library, which it loads when a step is first traced with FULL_TRACE. It reports
failures only in its log. This module therefore looks at the libraries that the process has loaded, at the driver's files and at
the dynamic linker's folders. It imports, loads and initializes nothing. It takes a few milliseconds: do not call it on a
training thread.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tftracer.contract.machine import GpuDevice
from tftracer.trace.model import GpuFacts

#: Where CUDA's own installers put libcupti.
CUDA_FOLDERS = (
    "/usr/local/cuda/extras/CUPTI/lib64",
    "/usr/local/cuda/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
)

#: Bits of a process's effective capabilities; either of them allows profiling where the driver restricts it.
CAP_SYS_ADMIN, CAP_PERFMON = 21, 38


def gpu_facts(
    proc: Path = Path("/proc"),
    modules: Mapping[str, Any] = sys.modules,
    environ: Mapping[str, str] = os.environ,
    cuda_folders: tuple[str, ...] = CUDA_FOLDERS,
) -> GpuFacts:
    """Return the known facts.

    Facts about TensorFlow are missing before its import, facts about libraries where there is no /proc.
    """
    facts = _build_facts(getattr(modules.get("tensorflow.python.platform.build_info"), "build_info", None))
    if "CUDA_VISIBLE_DEVICES" in environ:
        facts["visible_devices"] = environ["CUDA_VISIBLE_DEVICES"]
    loaded = _loaded_libraries(proc)
    if loaded is None:
        return facts
    facts["driver"] = (proc / "driver/nvidia/version").exists() or any("/libcuda.so" in path for path in loaded)
    facts["libcupti_loaded"] = next((path for path in loaded if "/libcupti.so" in path), "")
    if not facts["libcupti_loaded"] and facts.get("build") == "cuda":
        facts["libcupti_file"] = _libcupti_file(facts, _library_folders(modules, environ, cuda_folders))
    restricted = _restricted(proc)
    if restricted is not None:
        facts["restricted"] = restricted
    return facts


def _build_facts(build: Mapping[str, Any] | None) -> GpuFacts:
    """Return the facts about TensorFlow's build. ``build``: TensorFlow's own description of it."""
    if build is None:
        return {}
    facts: GpuFacts = {"build": "cuda" if build.get("is_cuda_build") else "rocm" if build.get("is_rocm_build") else "cpu"}
    if isinstance(build.get("cuda_version"), str):
        facts["cuda_version"] = build["cuda_version"]
    return facts


def _libcupti_file(facts: GpuFacts, folders: list[Path]) -> str:
    """Return the path of a libcupti of TensorFlow's CUDA version (TensorFlow loads no other version); "" if there is none."""
    major = facts.get("cuda_version", "").partition(".")[0]
    names = f"libcupti.so.{major}*" if major else "libcupti.so*"
    return next((str(path) for folder in folders for path in sorted(folder.glob(names))), "")


def _loaded_libraries(proc: Path) -> list[str] | None:
    try:
        maps = (proc / "self/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return sorted({line.split(maxsplit=5)[-1] for line in maps.splitlines() if ".so" in line})


def _library_folders(modules: Mapping[str, Any], environ: Mapping[str, str], cuda_folders: tuple[str, ...]) -> list[Path]:
    """Return the folders where libcupti may be, those of the dynamic linker first."""
    packages = Path(getattr(modules.get("tensorflow"), "__file__", None) or ".").parent.parent
    folders = [*environ.get("LD_LIBRARY_PATH", "").split(":"), str(packages / "nvidia/cuda_cupti/lib"), *cuda_folders]
    return [Path(folder) for folder in folders if folder]


def _restricted(proc: Path) -> bool | None:
    """Return whether only administrators may profile and this process lacks the right; None if unknown."""
    try:
        parameters = (proc / "driver/nvidia/params").read_text(encoding="utf-8", errors="replace")
        status = (proc / "self/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    if "RmProfilingAdminOnly: 1" not in parameters:
        return False
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return not int(effective, 16) & (1 << CAP_SYS_ADMIN | 1 << CAP_PERFMON)


def gpu_devices(kind: str = "GPU", modules: Mapping[str, Any] = sys.modules) -> list[GpuDevice]:
    """Return the names and compute capabilities of the GPUs, by number; [] if there are none or they are unknown.

    Call it only after TensorFlow has begun to use its GPUs: an earlier call would initialize them. It takes a few milliseconds.

    kind: TensorFlow's type of device. modules: the imported modules; this function does not import TensorFlow.
    """
    if "tensorflow" not in modules:
        return []
    try:
        config = modules["tensorflow"].config
        return [_device(config.experimental.get_device_details(device)) for device in config.list_physical_devices(kind)]
    except Exception:  # TensorFlow may raise any error here; a trace does not need these facts
        return []


def _device(details: Mapping[str, Any]) -> GpuDevice:
    capability = details.get("compute_capability") or ()
    return {
        "name": str(details.get("device_name", "")),
        "compute_capability": ".".join(map(str, capability)) if isinstance(capability, tuple) else str(capability),
    }
