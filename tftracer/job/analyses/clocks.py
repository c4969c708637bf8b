"""Estimates the offsets between the clocks of a job's processes from their common events. Pure NumPy.

There are two kinds of evidence. A collective ends at nearly the same moment on all of its ranks, so the difference between two
recorded ends is the difference between the clocks, plus noise. A message cannot arrive before it was sent, so each direction
bounds the difference from one side, as in NTP. Each traced step gives a few observations of a pair of clocks; a line through
the observations of all steps gives offset and drift. Times are int64 epoch nanoseconds; differences are "b's clock minus a's".
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tftracer.trace.arrays.types import Float64, Int64

#: Ends that are closer together than this belong to one fused response, whose callbacks run one after another: they count as one.
BATCH_GAP_NS = 50_000
#: Prior standard deviation of the drift: quartz clocks are off by some 10 ppm, bad ones by 100.
DRIFT_PRIOR = 200e-6
#: A prior that excludes any drift.
NO_DRIFT = 1e-12
#: Maximum number of observations from one step's matches. There are several, so that drift within a long step shows.
WINDOWS = 16
#: The clocks' resolution, added to the error of each observation.
RESOLUTION_NS = 500.0
#: For normal noise: sigma divided by the median absolute deviation, and the median's standard error divided by the mean's.
MAD_TO_SIGMA, MEDIAN_TO_MEAN = 1.4826, 1.2533
#: Huber's threshold: an observation whose residual exceeds this many sigmas gets less weight.
HUBER = 1.5


@dataclass(frozen=True)
class Observation:
    """At ``at_ns`` on a's clock, b's clock was ``offset_ns`` ahead of a's, with a standard error of ``sigma_ns``."""

    a: int
    b: int
    at_ns: int
    offset_ns: float
    sigma_ns: float
    matches: int  # number of common events (collectives, messages) that it summarizes


@dataclass(frozen=True)
class Clock:
    """A process's clock relative to the reference clock.

    It is ahead by ``offset_ns`` when the reference shows ``at_ns``, and ``drift`` ns more for each ns after that. ``sigma_ns`` is
    the standard error at ``at_ns``; infinite (with offset 0) if the offset is not known.
    """

    at_ns: int
    offset_ns: float = 0.0
    drift: float = 0.0
    sigma_ns: float = float("inf")
    matches: int = 0

    def ahead(self, times: Int64) -> Float64:
        """Return [n] by how many ns this clock is ahead of the reference at its own ``times``."""
        on_reference = ((times - self.at_ns).astype(np.float64) - self.offset_ns) / (1.0 + self.drift)
        return np.asarray(self.offset_ns + self.drift * on_reference)

    def to_reference(self, times: Int64) -> Int64:
        """Convert [n] times of this clock to the reference clock."""
        return times - np.rint(self.ahead(times)).astype(np.int64)


def from_ends(a: int, b: int, ends_a: Int64, ends_b: Int64) -> list[Observation]:
    """Return observations from ends of collectives: ``ends_a[i]`` and ``ends_b[i]`` are of the same collective."""
    if not len(ends_a):
        return []
    order = np.argsort(ends_a, kind="stable")
    at, difference = ends_a[order], (ends_b - ends_a)[order]
    batch = np.concatenate([[0], np.cumsum(np.diff(at) > BATCH_GAP_NS)])
    sizes = np.bincount(batch)
    medians = [int(np.median(difference[batch == i])) for i in range(len(sizes))]
    moments = [int(at[batch == i].mean()) for i in range(len(sizes))]
    return [
        _median_observation(a, b, np.array(moments)[part], np.array(medians)[part], int(sizes[part].sum()))
        for part in _windows(len(medians))
    ]


def _median_observation(a: int, b: int, at: Int64, difference: Int64, matches: int) -> Observation:
    """Return the median of a window. Its error comes from the scatter and has a lower bound, higher for fewer than 3 batches."""
    middle = float(np.median(difference))
    spread = MAD_TO_SIGMA * float(np.median(np.abs(difference - middle)))
    sigma = MEDIAN_TO_MEAN * spread / np.sqrt(len(difference))
    floor = 0.1 * float(np.ptp(difference)) + RESOLUTION_NS
    if len(difference) < 3:
        floor = max(floor, BATCH_GAP_NS)
    return Observation(a, b, int(at.mean()), middle, max(sigma, floor), matches)


def from_sends(a: int, b: int, there: tuple[Int64, Int64], back: tuple[Int64, Int64]) -> list[Observation]:
    """Return observations from messages: ``there`` is (sent on a's clock, received on b's), ``back`` the other direction.

    ``received_b - sent_a`` is the difference plus a delay: its minimum is an upper bound of the difference, and the other
    direction gives a lower bound. With only one direction the delay is unknown; then the median scatter is used as the error.
    """
    count = len(there[0]) + len(back[0])
    if not count:
        return []
    upper, lower = there[1] - there[0], back[0] - back[1]
    at = int(np.concatenate([there[0], back[1]]).mean())
    if len(upper) and len(lower):
        high, low = float(upper.min()), float(lower.max())
        return [Observation(a, b, at, (high + low) / 2, abs(high - low) / 4 + RESOLUTION_NS, count)]
    bound = float(upper.min()) if len(upper) else float(lower.max())
    delays = upper if len(upper) else lower
    return [Observation(a, b, at, bound, max(float(np.median(np.abs(delays - bound))), float(BATCH_GAP_NS)), count)]


def _windows(count: int) -> list[slice]:
    """Split the medians of ``count`` batches into at most WINDOWS parts, of at least 8 medians if there are so many."""
    parts = max(1, min(WINDOWS, count // 8))
    edges = np.linspace(0, count, parts + 1).astype(int)
    return [slice(int(edges[i]), int(edges[i + 1])) for i in range(parts)]


def estimate(observations: Sequence[Observation], processes: int, shared: Sequence[str] = ()) -> list[Clock]:
    """Return [processes] the clocks relative to the first process's (the reference), each by the most precise chain of pairs.

    ``shared``: [processes] an id of the machine's clock, "" if it is not known.
    """
    at_ns = int(np.median([o.at_ns for o in observations])) if observations else 0
    pairs: dict[tuple[int, int], list[Observation]] = defaultdict(list)
    for o in observations:
        pairs[o.a, o.b].append(o)
    edges: dict[int, list[tuple[int, Clock]]] = defaultdict(list)
    for a, b in _unobserved(pairs, shared):
        pairs[a, b] = []
    for (a, b), seen in pairs.items():
        clock = _line(seen, at_ns) if seen else Clock(at_ns)
        if shared and shared[a] == shared[b] != "":  # one clock: offset 0, though ends differ if a process waits for a CPU
            clock = Clock(at_ns, 0.0, 0.0, RESOLUTION_NS, clock.matches)
        edges[a].append((b, clock))
        edges[b].append((a, replace(clock, offset_ns=-clock.offset_ns, drift=-clock.drift)))
    return _chains(edges, processes, at_ns)


def _unobserved(pairs: Iterable[tuple[int, int]], shared: Sequence[str]) -> list[tuple[int, int]]:
    """Pair each process without observations with the first process that has the same machine clock."""
    observed = {process for pair in pairs for process in pair}
    first: dict[str, int] = {}
    for process, clock in enumerate(shared):
        first.setdefault(clock, process)
    return [(first[c], p) for p, c in enumerate(shared) if c and p not in observed and first[c] != p]


def _line(seen: Sequence[Observation], at_ns: int) -> Clock:
    """Fit a weighted line through a pair's observations, robust against outliers (Huber), with a prior on the drift."""
    time = np.array([o.at_ns - at_ns for o in seen], np.float64)
    offset = np.array([o.offset_ns for o in seen])
    sigma = np.array([o.sigma_ns for o in seen])
    middle = float(np.median(offset))  # subtracted first, because a large offset (50 ms) would cost precision
    fitted, error, residual = _huber(time, offset - middle, sigma, DRIFT_PRIOR)
    if abs(fitted[1]) < 2 * error[1]:  # not significant
        fitted, error, residual = _huber(time, offset - middle, sigma, NO_DRIFT)
    scatter = max(1.0, float(np.sqrt(np.mean(np.minimum(residual, 3 * HUBER) ** 2))))
    matches = sum(o.matches for o in seen)
    return Clock(at_ns, middle + float(fitted[0]), float(fitted[1]), float(error[0]) * scatter, matches)


def _huber(time: Float64, offset: Float64, sigma: Float64, prior: float) -> tuple[Float64, Float64, Float64]:
    """Return ``([offset, slope], their standard errors, [n] residuals in sigmas)`` of a line. Slope prior: 0 ± ``prior``."""
    base = sigma**-2.0
    weight = base
    for _ in range(20):
        cross = float((weight * time).sum())
        normal = np.array([[weight.sum(), cross], [cross, (weight * time**2).sum() + prior**-2.0]])
        fitted = np.linalg.solve(normal, np.array([(weight * offset).sum(), (weight * time * offset).sum()]))
        residual = np.abs(offset - fitted[0] - fitted[1] * time) / sigma
        weight = base * np.minimum(1.0, HUBER / np.maximum(residual, 1e-12))
    return fitted, np.sqrt(np.diag(np.linalg.inv(normal))), residual


def _chains(edges: dict[int, list[tuple[int, Clock]]], processes: int, at_ns: int) -> list[Clock]:
    """Return each clock by the most precise chain from process 0 (Dijkstra over variances), with the offsets summed."""
    clocks = [Clock(at_ns) for _ in range(processes)]
    queue: list[tuple[float, int, Clock]] = [(0.0, 0, Clock(at_ns, 0.0, 0.0, 0.0, 0))]
    done: set[int] = set()
    while queue:
        variance, node, clock = heapq.heappop(queue)
        if node in done:
            continue
        done.add(node)
        clocks[node] = clock
        for neighbour, edge in edges[node]:
            if neighbour not in done:
                total = variance + edge.sigma_ns**2
                heapq.heappush(queue, (total, neighbour, _joined(clock, edge, total, node == 0)))
    return clocks


def _joined(clock: Clock, edge: Clock, variance: float, is_reference: bool) -> Clock:
    matches = edge.matches if is_reference else min(clock.matches, edge.matches)
    return Clock(clock.at_ns, clock.offset_ns + edge.offset_ns, clock.drift + edge.drift, float(np.sqrt(variance)), matches)
