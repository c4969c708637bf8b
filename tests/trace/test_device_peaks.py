"""Peak rates: the figures of the data sheets, and no figure for what is not known."""

from __future__ import annotations

import pytest

from tftracer.trace.device_peaks import Hardware, peaks_of

#: (name, capability): (dtype, unit) -> TFLOP/s, GB/s, as the data sheets and white papers have them.
SHEETS = {
    ("Tesla P100-SXM2-16GB", "6.0"): ({("float64", ""): 5.3, ("float32", ""): 10.6, ("float16", ""): 21.2}, 732),
    ("Tesla V100-SXM2-16GB", "7.0"): ({("float64", ""): 7.8, ("float32", ""): 15.7, ("float16", "tensor cores"): 125}, 900),
    ("Tesla T4", "7.5"): ({("float32", ""): 8.1, ("float16", "tensor cores"): 65}, 320),
    ("NVIDIA A100-SXM4-40GB", "8.0"): (
        {
            ("float64", ""): 9.7,
            ("float64", "tensor cores"): 19.5,
            ("float32", ""): 19.5,
            ("float32", "tensor cores as TF32"): 156,
            ("float16", "tensor cores"): 312,
            ("bfloat16", "tensor cores"): 312,
        },
        1555,
    ),
    ("NVIDIA L4", "8.9"): ({("float32", ""): 30.3, ("bfloat16", "tensor cores"): 121}, 300),
    ("NVIDIA L40S", "8.9"): ({("float32", ""): 91.6, ("bfloat16", "tensor cores"): 362}, 864),
    ("NVIDIA GeForce RTX 3090", "8.6"): ({("float32", ""): 35.6, ("float16", "tensor cores"): 71}, 936),
    ("NVIDIA H100 80GB HBM3", "9.0"): ({("float64", "tensor cores"): 66.9, ("float32", ""): 66.9}, 3352),
}


@pytest.mark.parametrize("name, capability", SHEETS)
def test_gpus_have_the_rates_of_their_data_sheets(name: str, capability: str) -> None:
    rates, bandwidth = SHEETS[name, capability]
    known = peaks_of(None, {"name": name, "compute_capability": capability})
    found = {(peak.dtype, peak.unit): peak.flops_per_s / 1e12 for peak in known.peaks}
    assert {kind: found[kind] for kind in rates} == pytest.approx(rates, rel=0.02)
    assert known.bytes_per_s == pytest.approx(bandwidth * 1e9, rel=0.01) and name in known.words


def test_what_the_trace_says_of_clock_and_size_counts() -> None:
    half = Hardware("Nvidia", "8.0", multiprocessors=54, clock_hz=0.705e9, bytes_per_s=1e12)  # a slice of one, clocked down
    known = peaks_of(half, {"name": "NVIDIA A100-SXM4-40GB", "compute_capability": "8.0"})
    assert {peak.unit: peak.flops_per_s for peak in known.peaks if peak.dtype == "float32"} == pytest.approx(
        {"": 19.5e12 / 4, "tensor cores as TF32": 156e12 / 4}, rel=0.01
    )
    assert known.bytes_per_s == 1e12


@pytest.mark.parametrize(
    "hardware, name, capability, words",
    [
        (None, "", "", "which GPU this is"),
        (None, "Tesla K80", "3.7", "no GPU of compute capability 3.7"),
        (None, "NVIDIA GeForce RTX 3080", "8.6", "how many multiprocessors NVIDIA GeForce RTX 3080 has"),
        (Hardware("AMD", "9.0", 110, 1.7e9), "", "", "no AMD GPU of compute capability 9.0"),
        (Hardware("", "9.0", 110, 1.7e9), "", "", "who made this GPU"),  # NVIDIA's Hopper, or AMD's MI200
        (Hardware("Nvidia", "12.1", 48, 2.5e9), "", "", "no GPU of compute capability 12.1"),
    ],
)
def test_of_a_gpu_that_is_not_known_nothing_is_claimed(hardware: Hardware | None, name: str, capability: str, words: str) -> None:
    unknown = peaks_of(hardware, {"name": name, "compute_capability": capability} if name else None)
    assert unknown.peaks == [] and unknown.bytes_per_s is None and words in unknown.words
