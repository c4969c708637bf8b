"""Injected skew is estimated and removed; clocks without common events are unknown."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tftracer.job.analyses.clocks import Clock, Observation, estimate, from_ends, from_sends

EPOCH = 1_795_240_966_288_994_655
MS = 1_000_000


def skewed(times: np.ndarray, offset_ns: float, drift: float) -> np.ndarray:
    """What a clock that is ahead and runs fast shows at true ``times``."""
    return times + np.rint(offset_ns + drift * (times - EPOCH)).astype(np.int64)


def ends_of_steps(seed: int, steps: int, collectives: int, period_s: float) -> np.ndarray:
    random = np.random.default_rng(seed)
    starts = EPOCH + (np.arange(steps) * period_s * 1e9).astype(np.int64)
    return np.sort(starts[:, None] + random.integers(0, 6 * MS, (steps, collectives)), axis=1)


@pytest.mark.parametrize("seed", range(5))
def test_skew_and_drift_over_a_job_are_removed_to_a_tenth_of_the_shortest_collective(seed: int) -> None:
    random = np.random.default_rng(seed)
    shortest, true = 1_560_877, ends_of_steps(seed, 10, 30, 2.0)
    noise = random.normal(0, 100_000, (2, *true.shape)).astype(np.int64)  # as large as on a busy machine
    a, b = true + noise[0], skewed(true, 50 * MS, 100e-6) + noise[1]
    observations = [o for i in range(len(true)) for o in from_ends(0, 1, a[i], b[i])]
    clock = estimate(observations, 2)[1]
    left = clock.to_reference(skewed(true, 50 * MS, 100e-6)) - true
    assert np.abs(left).max() < shortest / 10
    assert abs(clock.drift - 100e-6) < 10e-6
    assert 0 < clock.sigma_ns < shortest / 10
    assert clock.matches == 300


def test_one_long_step_shows_its_drift() -> None:
    true = EPOCH + (np.arange(400) * 50 * MS)  # 20 s
    b = skewed(true, 50 * MS, 100e-6)
    clock = estimate(from_ends(0, 1, true, b), 2)[1]
    assert np.abs(clock.to_reference(b) - true).max() < 20_000


def test_one_short_step_claims_no_drift() -> None:
    true = ends_of_steps(1, 1, 30, 1.0)[0]
    noisy = true + np.random.default_rng(1).normal(0, 100_000, 30).astype(np.int64)
    clock = estimate(from_ends(0, 1, true, noisy), 2)[1]
    assert abs(clock.drift) < 1e-9


def test_a_wild_match_does_not_pull() -> None:
    true = ends_of_steps(3, 8, 20, 1.0)
    b = true + 5 * MS
    b[2] += 900 * MS  # a whole step matched with another one
    observations = [o for i in range(len(true)) for o in from_ends(0, 1, true[i], b[i])]
    assert abs(estimate(observations, 2)[1].offset_ns - 5 * MS) < 200_000


def test_sends_in_both_directions_bound_the_difference() -> None:
    sent = EPOCH + np.arange(20) * 100_000
    there = (sent, sent + 7 * MS + 80_000)  # b is 7 ms ahead, 80 us on the way
    back = (sent + 7 * MS, sent + 120_000)
    (seen,) = from_sends(0, 1, there, back)
    assert abs(seen.offset_ns - 7 * MS) <= 20_000 and 2 * seen.sigma_ns >= 20_000


def test_sends_in_one_direction_are_believed_less() -> None:
    sent = EPOCH + np.arange(20) * 100_000
    none = np.zeros(0, np.int64)
    one = from_sends(0, 1, (sent, sent + 80_000), (none, none))[0]
    other = from_sends(1, 0, (none, none), (sent, sent + 80_000))[0]
    assert one.sigma_ns >= 50_000 and one.offset_ns == -other.offset_ns == 80_000
    assert from_sends(0, 1, (none, none), (none, none)) == []


def test_a_chain_through_a_parameter_server_ties_two_workers() -> None:
    seen = [Observation(0, 2, EPOCH, 3e6, 1e4, 5), Observation(1, 2, EPOCH, -2e6, 1e4, 9)]
    clocks = estimate(seen, 3)
    assert clocks[1].offset_ns == pytest.approx(5e6, abs=1) and clocks[2].offset_ns == pytest.approx(3e6, abs=1)
    assert clocks[1].sigma_ns > clocks[2].sigma_ns
    assert clocks[1].matches == 5


def test_what_nothing_ties_together_is_unknown() -> None:
    clocks = estimate([Observation(0, 1, EPOCH, 5.0, 1e3, 3)], 3)
    assert clocks[2].sigma_ns == float("inf") and clocks[2].offset_ns == 0
    assert estimate([], 1) == [Clock(0, 0.0, 0.0, 0.0, 0)]
    assert from_ends(0, 1, np.zeros(0, np.int64), np.zeros(0, np.int64)) == []


def test_processes_of_one_machine_share_its_clock_whatever_their_ends_say() -> None:
    true = ends_of_steps(5, 1, 30, 1.0)[0]
    late = true + 2 * MS + np.random.default_rng(5).integers(0, MS, 30)  # a starved rank is told of each end later
    observations = from_ends(0, 1, true, late)
    assert estimate(observations, 2)[1].offset_ns > 2 * MS
    clock = estimate(observations, 2, shared=["m", "m"])[1]
    assert (clock.offset_ns, clock.drift, clock.matches) == (0.0, 0.0, 30) and clock.sigma_ns < 10_000
    assert estimate(observations, 2, shared=["m", "n"])[1].offset_ns > 2 * MS
    assert estimate(observations, 2, shared=["", ""])[1].offset_ns > 2 * MS


def test_on_a_busy_machine_ends_that_scatter_by_hundreds_of_milliseconds_are_of_one_clock() -> None:
    """Two processes of one host: their clocks agreed "within 166 ms", so that 55 ms of waiting were nobody's fault."""
    true = ends_of_steps(5, 1, 40, 1.0)[0]
    late = true + np.random.default_rng(2).integers(-100 * MS, 300 * MS, 40)
    observations = from_ends(0, 1, true, late)
    assert abs(estimate(observations, 2)[1].offset_ns) > 20 * MS
    clock = estimate(observations, 2, shared=["m", "m"])[1]
    assert clock.offset_ns == 0 and clock.sigma_ns < 10_000


def test_one_machines_processes_are_tied_without_a_collective() -> None:
    clocks = estimate([Observation(0, 1, EPOCH, 30e6, 1e3, 3)], 4, shared=["m", "n", "m", "n"])
    assert [c.offset_ns for c in clocks] == pytest.approx([0, 30e6, 0, 30e6])
    assert all(c.sigma_ns < 10_000 for c in clocks)


@settings(max_examples=50, deadline=None)
@given(st.integers(-(10**12), 10**12), st.floats(-150e-6, 150e-6), st.integers(0, 2**32 - 1))
def test_without_noise_the_clock_is_found(offset: int, drift: float, seed: int) -> None:
    true = ends_of_steps(seed, 12, 10, 5.0)
    b = skewed(true, offset, drift)
    observations = [o for i in range(len(true)) for o in from_ends(0, 1, true[i], b[i])]
    clock = estimate(observations, 2)[1]
    assert np.abs(clock.to_reference(b) - true).max() < 10_000
