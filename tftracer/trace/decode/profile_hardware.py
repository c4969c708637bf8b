"""What a profile says of its devices themselves: clock, number of multiprocessors, memory."""

from __future__ import annotations

from tftracer.trace.decode.xplane import Plane, Space
from tftracer.trace.hardware import Hardware


def hardware_of(space: Space) -> dict[str, Hardware]:
    """By the names of their planes, which are the ``parent`` of their streams; those that say nothing are left out."""
    known = {plane.name: _hardware(plane) for plane in space.planes if plane.is_device}
    return {name: hardware for name, hardware in known.items() if hardware != Hardware()}


def _hardware(plane: Plane) -> Hardware:
    major, minor = (plane.stats.get(f"compute_cap_{part}") for part in ("major", "minor"))
    capability = f"{major}.{minor or 0}" if isinstance(major, int) and 0 < major < 100 else ""
    return Hardware(
        vendor=str(plane.stats.get("device_vendor", ""))[:50],
        compute_capability=capability,
        multiprocessors=int(_within(plane, "core_count", 1, 1e5) or 0) or None,
        clock_hz=_within(plane, "clock_rate", 1e5, 1e7, 1e3),
        memory_bytes=_within(plane, "memory_size", 1e6, 1e15),
        bytes_per_s=_within(plane, "memory_bandwidth", 1e8, 1e15),
    )


def _within(plane: Plane, name: str, least: float, most: float, unit: float = 1.0) -> float | None:
    """A stat of a plane; None for one that no device can have."""
    value = plane.stats.get(name)
    return value * unit if isinstance(value, (int, float)) and least <= value <= most else None
