"""The model of this machine's processor."""

from __future__ import annotations

import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


def processor() -> str:
    """Such as "AMD EPYC 7B13"; where the system does not tell, the architecture: "aarch64"."""
    try:
        with _CPUINFO.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() == "model name" and value.strip():
                    return value.strip()[:100]
    except OSError:
        pass
    return (platform.processor() or platform.machine())[:100]
