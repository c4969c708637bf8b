"""The limits that a trace's ops are compared with, for each kind of device:

- *measured*: the rates that ``tftracer roof`` measured on the machine that recorded the trace.
- *peak*: for a GPU, the table of peak rates (device_peaks.py), with the clock and the number of multiprocessors from the trace,
  or else from the GPU's data sheet.
- *best*: the best rates of the run's traces, by type of number, in one execution of at least ``MIN_NS``. These are not the
  machine's peak: if all ops are slow, they look good in comparison. The bytes of an op are those that it must read and write
  at least once; if caches hold some of them, this limit is higher than the memory's real rate.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tftracer.contract.machine import GpuDevice
from tftracer.contract.roofline import Roof, RoofSource, RoofWords
from tftracer.trace.analyses.physical_devices import Group
from tftracer.trace.arrays.intervals import distinct
from tftracer.trace.arrays.types import Float64, Int64
from tftracer.trace.device_peaks import Peaks, peaks_of
from tftracer.trace.model import Trace, TraceContext

#: The rates of shorter executions are unreliable because of the clock's resolution.
MIN_NS = 1_000

#: The order in which sources are tried for an op's type of number.
ORDER: tuple[RoofSource, ...] = ("measured", "peak", "best")


@dataclass(frozen=True)
class Executions:
    """Executions with known FLOPs and bytes, one entry each."""

    node: Int64
    group: Int64  # codes into the physical devices
    dtype: Int64  # tensorflow.DataType
    flops: Float64
    bytes: Float64
    duration: Float64  # ns, more than 0


class Limit(NamedTuple):
    """The limits of one kind of device according to one source; None: not known."""

    source: RoofSource
    compute: float | None  # FLOP/s for one type of number
    memory: float | None  # bytes/s


@dataclass
class Roofs:
    """The roofs of a trace's devices, and a sentence on each source (``words``)."""

    roofs: list[Roof]
    words: list[RoofWords]

    def limits(self, kind: str, dtype: str) -> list[Limit]:
        """Return the limit of each source that has one, in the order in which they are tried."""
        of_kind = [roof for roof in self.roofs if roof["device"] == kind]
        result = []
        for source in ORDER:
            of_source = [(roof["dtype"], roof["rate"]) for roof in of_kind if roof["source"] == source]
            # Of several rates for one type of number, take the highest, such as that of tensor cores.
            compute = max((rate for name, rate in of_source if name == dtype != ""), default=None)
            result.append(Limit(source, compute, max((rate for name, rate in of_source if not name), default=None)))
        return [limit for limit in result if limit.compute or limit.memory]


def kind_of(group: Group) -> str:
    return group.kind.value.upper()


def roofs_of(
    trace: Trace,
    groups: list[Group],
    executions: Executions,
    names: dict[int, str],
    context: TraceContext,
    other_traces: Sequence[Sequence[Roof]],
) -> Roofs:
    """Collect the roofs. ``names``: type code -> name. ``other_traces``: the best rates of other traces of the run."""
    result, own = Roofs([], []), best_rates(groups, executions, names)
    present = [groups[code] for code in distinct(executions.group).tolist()]
    for kind in sorted({kind_of(group) for group in present}):
        of_kind = [group for group in present if kind_of(group) == kind]
        by_source: list[tuple[RoofSource, list[Roof], str]] = [("measured", *_measured(kind, of_kind, context))]
        if kind == "GPU":
            by_source.append(("peak", *_peak(_peaks(trace, of_kind, context.gpu_devices))))
        by_source.append(("best", *_best(kind, own, other_traces)))
        for source, roofs, text in by_source:
            result.roofs += roofs
            result.words.append({"source": source, "device": kind, "text": text})
    return result


def _measured(kind: str, groups: list[Group], context: TraceContext) -> tuple[list[Roof], str]:
    """Return the roofs of a kind of device, and a sentence on them."""
    roof = context.measured_roof
    if roof is None:
        return [], "Not measured. Run tftracer roof --save on the machine that trains, and open the session there."
    if len({(group.job, group.task) for group in groups}) > 1:
        why = "The trace has several processes, and other machines may have run them."
        return [], f"{why} Rates were measured on one machine only."
    device = next((device for device in roof["devices"] if device["kind"] == kind), None)
    gpu_names = {gpu["name"] for gpu in context.gpu_devices} - {""}
    if device is None or (kind == "GPU" and gpu_names and device["title"] not in gpu_names):
        return [], f"tftracer roof did not measure this {kind}. Run it again where TensorFlow sees the {kind}."
    roofs = [_roof("measured", kind, rate["dtype"], rate["flops_per_s"]) for rate in device["rates"]]
    if device["bytes_per_s"] is not None:
        roofs.append(_roof("measured", kind, "", device["bytes_per_s"]))
    day = time.strftime("%Y-%m-%d", time.gmtime(min(max(roof["measured_at"], 0.0), 4e9)))
    return roofs, f"Measured by tftracer roof on {day}: {device['title']}. {roof['doubt']}".strip()


def _peaks(trace: Trace, groups: list[Group], gpus: list[GpuDevice]) -> Peaks:
    """Return the peaks of the first GPU whose peaks are known; else those of the first GPU, which say why they are unknown."""
    peaks_of_gpus = []
    for group in groups:
        device = trace.devices[group.codes[0]]
        hardware = next((trace.hardware[key] for key in (device.parent, device.name) if key in trace.hardware), None)
        peaks_of_gpus.append(peaks_of(hardware, gpus[device.index] if 0 <= device.index < len(gpus) else None))
    return next((of_gpu for of_gpu in peaks_of_gpus if of_gpu.peaks), peaks_of_gpus[0])


def _peak(known: Peaks) -> tuple[list[Roof], str]:
    roofs = [_roof("peak", "GPU", peak.dtype, peak.flops_per_s, peak.unit) for peak in known.peaks]
    if known.bytes_per_s is not None:
        roofs.append(_roof("peak", "GPU", "", known.bytes_per_s))
    return roofs, f"Peak rates of {known.words}." if known.peaks else known.words


def best_rates(groups: list[Group], executions: Executions, names: dict[int, str]) -> list[Roof]:
    """Return the best rates of these executions, by kind of device and type of number, and the best rates of memory."""
    best: list[Roof] = []
    kinds = np.array([kind_of(group) for group in groups] or [""])
    kind_of_execution = kinds[executions.group]
    long_enough = executions.duration >= MIN_NS
    for kind in distinct(kind_of_execution[long_enough]).tolist():
        rows = np.flatnonzero(long_enough & (kind_of_execution == kind))
        per_second, dtype = 1e9 / executions.duration[rows], executions.dtype[rows]
        computed, moved = executions.flops[rows] * per_second, executions.bytes[rows] * per_second
        rates = [(names[code], np.where(dtype == code, computed, 0.0)) for code in distinct(dtype[computed > 0]).tolist()]
        for name, rate in [*rates, ("", moved)]:
            if rate.max() > 0:
                at = int(rate.argmax())
                best.append(_roof("best", kind, name, float(rate[at]), node=int(executions.node[rows[at]])))
    return best


def _best(kind: str, own: Sequence[Roof], other_traces: Sequence[Sequence[Roof]]) -> tuple[list[Roof], str]:
    """Return the highest rates among the trace's own rates and those of other traces."""
    best: dict[str, Roof] = {}
    elsewhere: list[Roof] = [{**roof, "node": -1} for rates in other_traces for roof in rates]
    for roof in [*own, *elsewhere]:
        if roof["device"] == kind and (roof["dtype"] not in best or roof["rate"] > best[roof["dtype"]]["rate"]):
            best[roof["dtype"]] = roof
    traces = sum(any(roof["device"] == kind for roof in rates) for rates in (own, *other_traces))
    if not traces:
        return [], f"No op of this trace took {MIN_NS / 1000:.0f} µs or more, so there is no best rate."
    of_traces = f"{traces} traces of this run" if traces > 1 else "this trace"
    return list(best.values()), f"Best rates of {of_traces}, not the machine's peak rates."


def _roof(source: RoofSource, kind: str, dtype: str, rate: float, unit: str = "", node: int = -1) -> Roof:
    return {"source": source, "device": kind, "dtype": dtype, "unit": unit, "rate": rate, "node": node}
