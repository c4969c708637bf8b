"""The watch's bounds: the switch interval that it sets, the CPU that it may use."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tftracer.capture.cpu_allowance import BURST_S, RARE_TICK_S, SHARE, TICK_S, CpuAllowance
from tftracer.capture.switch_interval import SHORT_S, SwitchInterval


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    yield
    sys.setswitchinterval(before)


def test_the_interval_is_short_for_a_while() -> None:
    interval = SwitchInterval()
    interval.shorten()
    interval.shorten()
    assert sys.getswitchinterval() == pytest.approx(SHORT_S)
    interval.restore()
    interval.restore()
    assert sys.getswitchinterval() == pytest.approx(0.005)


def test_what_the_script_sets_meanwhile_stays() -> None:
    interval = SwitchInterval()
    interval.shorten()
    sys.setswitchinterval(0.02)
    interval.restore()
    assert sys.getswitchinterval() == pytest.approx(0.02)


def test_a_shorter_one_of_the_scripts_is_not_touched() -> None:
    sys.setswitchinterval(0.0001)
    interval = SwitchInterval()
    interval.shorten()
    assert sys.getswitchinterval() == pytest.approx(0.0001)
    interval.restore()
    assert sys.getswitchinterval() == pytest.approx(0.0001)


def test_two_watches_leave_it_as_it_was() -> None:
    one, other = SwitchInterval(), SwitchInterval()
    one.shorten()
    other.shorten()
    one.restore()
    other.restore()
    assert sys.getswitchinterval() == pytest.approx(0.005)


class Clocks:
    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def pass_by(self, seconds: float, share: float) -> None:
        self.wall += seconds
        self.cpu += seconds * share


def test_samples_are_left_out_when_the_share_is_used_and_taken_again_later() -> None:
    clocks = Clocks()
    allowance = CpuAllowance(lambda: clocks.wall, lambda: clocks.cpu)
    for _ in range(10):
        clocks.pass_by(1, 0.02)  # a long stall
        allowance.update()
    assert not allowance.used_up
    for _ in range(15):
        clocks.pass_by(1, 0.02)
        allowance.update()
    assert allowance.used_up and not allowance.exceeded
    for _ in range(60):
        clocks.pass_by(1, 0.001)
        allowance.update()
    assert not allowance.used_up


def test_over_any_time_it_uses_its_share_and_one_burst() -> None:
    clocks = Clocks()
    allowance = CpuAllowance(lambda: clocks.wall, lambda: clocks.cpu)
    for _ in range(5000):
        clocks.pass_by(1, 0.001 if allowance.used_up else 0.02)
        allowance.update()
    assert clocks.cpu <= 5000 * SHARE + BURST_S + 0.05 and not allowance.exceeded


def test_it_is_exceeded_when_leaving_samples_out_is_not_enough() -> None:
    clocks = Clocks()
    allowance = CpuAllowance(lambda: clocks.wall, lambda: clocks.cpu)
    for _ in range(200):
        clocks.pass_by(1, 0.01)
        allowance.update()
    assert allowance.exceeded


def test_looks_that_cost_much_become_rare() -> None:
    clocks = Clocks()
    allowance = CpuAllowance(lambda: clocks.wall, lambda: clocks.cpu)
    clocks.pass_by(1, 0.002)  # 50 looks of 40 µs
    allowance.update(50)
    assert allowance.tick_s == TICK_S
    clocks.pass_by(1, 0.006)
    allowance.update(50)
    assert allowance.tick_s == pytest.approx(0.048) and not allowance.used_up
    clocks.pass_by(1, 0.05)
    allowance.update(50)
    assert allowance.tick_s == RARE_TICK_S
    clocks.pass_by(1, 0.02)
    allowance.update()  # stacks were sampled: that tells nothing of looks
    assert allowance.tick_s == RARE_TICK_S
