"""What real GPUs' profiles say of the devices, and what that makes of their peaks."""

from __future__ import annotations

import plain_protobuf
import pytest

from tftracer.trace.decode.xplane_reader import plane_messages
from tftracer.trace.decode.xspace import decode_xspace
from tftracer.trace.device_peaks import Hardware, peaks_of


def test_a_v100() -> None:
    trace = decode_xspace(plain_protobuf.content("gpu_v100_excerpt.xplane.pb.gz"))
    hardware = trace.hardware["/device:GPU:4"]
    assert hardware == Hardware("", "7.0", 80, 1.53e9, 898.048e9)
    assert "/device:GPU:4" in {device.parent for device in trace.devices}
    known = peaks_of(hardware)
    rates = {(peak.dtype, peak.unit): peak.flops_per_s / 1e12 for peak in known.peaks}
    assert rates["float32", ""] == pytest.approx(15.7, rel=0.01)
    assert rates["float16", "tensor cores"] == pytest.approx(125, rel=0.01)
    assert known.bytes_per_s == 898.048e9


def test_an_mi300_whose_bandwidth_its_profiler_reports_wrong() -> None:
    hardware = decode_xspace(plain_protobuf.content("gpu_mi300_excerpt.xplane.pb.gz")).hardware["/device:GPU:0"]
    assert (hardware.vendor, hardware.compute_capability, hardware.multiprocessors) == ("AMD", "9.4", 304)
    known = peaks_of(hardware)
    rates = {(peak.dtype, peak.unit): peak.flops_per_s / 1e12 for peak in known.peaks}
    assert rates["float32", ""] == pytest.approx(163.4, rel=0.01)
    assert rates["bfloat16", "matrix cores"] == pytest.approx(1307.4, rel=0.01)
    assert known.bytes_per_s is None


def test_a_profile_of_a_cpu_says_nothing() -> None:
    assert decode_xspace(plain_protobuf.content("convnet_tf2.21.xplane.pb")).hardware == {}


def test_figures_that_no_device_has_are_not_believed() -> None:
    space = plane_messages()["Space"]()
    plane = space.planes.add(name=b"/device:GPU:0")
    for number, (name, value) in enumerate({"clock_rate": -5, "core_count": 1 << 60, "compute_cap_major": 7}.items(), 1):
        plane.stat_metadata.add(id=number).value.name = name.encode()
        plane.stats.add(metadata_id=number, int64_value=value)
    assert decode_xspace(space.SerializeToString()).hardware == {"/device:GPU:0": Hardware(compute_capability="7.0")}
