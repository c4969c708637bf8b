"""Periods of slow steps, by simulation: false alarms in histories without a period, planted ones that are told, and the cost.

python benchmarks/bench_periods.py [--histories 10000]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from tftracer.slow.cause.equal_distances import Proven
from tftracer.slow.cause.find_periods import Periods

Generator = np.random.Generator


class SlowStep(NamedTuple):
    step: int
    seconds: float
    kind: str | None


class Told(NamedTuple):
    periods: list[Proven]  # that were told at any time
    longest_s: float  # that one slow step took


def told(slow: Iterable[SlowStep], steps: int) -> Told:
    """Every period that was told while a run went on, as it was known last."""
    periods, seen, longest = Periods(), dict[tuple[int, int], Proven](), 0.0
    for each in slow:
        start = time.thread_time()
        periods.passed(each.step - 1)
        periods.add(*each)
        longest = max(longest, time.thread_time() - start)
        seen.update({(period.length, period.first): period for period in periods.periods()})
    periods.passed(steps)
    seen.update({(period.length, period.first): period for period in periods.periods()})
    return Told(list(seen.values()), longest)


# ------------------------------------------------------------------------------------------------- histories without a period

#: What a busy machine's slow steps are taken for, as often.
KINDS = [None, None, None, "machine", "python step()"]


def noise(random: Generator, steps: Iterable[int]) -> list[SlowStep]:
    return [SlowStep(int(step), float(0.03 * random.lognormal(0, 1)), KINDS[random.integers(len(KINDS))]) for step in steps]


def scattered(random: Generator, rate: float, steps: int) -> list[SlowStep]:
    return noise(random, np.flatnonzero(random.random(steps) < rate) + 1)


def bursts(random: Generator, steps: int) -> list[SlowStep]:
    """Twelve to sixty times the machine is busy for 10 to 300 steps, and slows 10 to 50% of them."""
    slow = np.zeros(steps, bool)
    for start in random.integers(0, steps - 300, random.integers(12, 61)):
        long = random.integers(10, 301)
        slow[start : start + long] |= random.random(long) < random.uniform(0.1, 0.5)
    return noise(random, np.flatnonzero(slow) + 1)


def clusters(random: Generator, steps: int) -> list[SlowStep]:
    """Something holds up one to five steps in a row, at random."""
    slow = np.zeros(steps + 5, bool)
    for start in np.flatnonzero(random.random(steps) < 0.005):
        slow[start : start + random.integers(1, 6)] = True
    return noise(random, np.flatnonzero(slow[:steps]) + 1)


History = Callable[[Generator], tuple[list[SlowStep], int]]


def scattered_history(rate: float, steps: int) -> History:
    return lambda random: (scattered(random, rate, steps), steps)


NULLS: dict[str, History] = {
    **{
        f"{rate:.1%} of {steps:,} steps": scattered_history(rate, steps)
        for steps in (8_000, 20_000)
        for rate in (0.002, 0.01, 0.05)
    },
    "bursts in 8,000 steps": lambda random: (bursts(random, 8_000), 8_000),
    "bursts in 20,000 steps": lambda random: (bursts(random, 20_000), 20_000),
    "clusters in 8,000 steps": lambda random: (clusters(random, 8_000), 8_000),
}

# ------------------------------------------------------------------------------------------------------------ planted periods


class Planted(NamedTuple):
    """A period in the slow steps of a run."""

    length: int
    first: int
    last: int
    seconds: float = 0.4
    kind: str | None = "wait load()"
    jitter: int = 0
    missed: float = 0.05  # of its steps: not slow enough, or not caught


def plant(random: Generator, planted: Planted) -> list[SlowStep]:
    caught = [step for step in range(planted.first, planted.last + 1, planted.length) if random.random() >= planted.missed]
    off = random.integers(-planted.jitter, planted.jitter + 1, len(caught))
    return [
        SlowStep(int(step + moved), float(planted.seconds * random.lognormal(0, 0.1)), planted.kind)
        for step, moved in zip(caught, off)
    ]


STEPS = 8_000
PLANTED: dict[str, list[Planted]] = {
    "every 50th, four times": [Planted(50, 50, 200, missed=0)],
    "every 97th, six times": [Planted(97, 97, 582, missed=0)],
    "every 97th, cause not known": [Planted(97, 97, STEPS, kind=None)],
    "every 80th": [Planted(80, 80, STEPS)],
    "every 500th": [Planted(500, 500, STEPS)],
    "every 40th and every 64th": [Planted(40, 40, STEPS), Planted(64, 64, STEPS, 0.9, "disk save()")],
    "every 50th, then every 80th": [Planted(50, 50, 4_000), Planted(80, 4_080, STEPS)],
    "every 97th, a step off": [Planted(97, 97, STEPS, jitter=1)],
    "every 25th, a step off, cause not known": [Planted(25, 25, STEPS, kind=None, jitter=1)],
}


def is_right(periods: list[Proven], planted: list[Planted]) -> bool:
    """Each planted one was told, and is_active at the end if it went on to there."""
    return all(
        any(
            abs(period.length - each.length) <= each.jitter
            and period.kind == each.kind
            and (period.is_active or each.last < STEPS - 3 * each.length)
            for period in periods
        )
        for each in planted
    )


def is_false(period: Proven, planted: list[Planted]) -> bool:
    return all(abs(period.length - each.length * max(1, round(period.length / each.length))) > each.jitter for each in planted)


def with_noise(random: Generator, planted: list[Planted], rate: float) -> list[SlowStep]:
    every = [*scattered(random, rate, STEPS), *(slow for each in planted for slow in plant(random, each))]
    return sorted({slow.step: slow for slow in every}.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=10_000, help="without a period; a hundredth of that with one, each")
    count = parser.parse_args().histories
    random = np.random.default_rng(24)
    longest, alarms, each = 0.0, 0, max(1, count // len(NULLS))
    for name, history in NULLS.items():
        told_false, slow_steps, start = 0, 0, time.thread_time()
        for _ in range(each):
            slow, steps = history(random)
            result = told(slow, steps)
            told_false += bool(result.periods)
            slow_steps += len(slow)
            longest = max(longest, result.longest_s)
        alarms += told_false
        micro = (time.thread_time() - start) / max(slow_steps, 1) * 1e6
        print(f"no period, {name}: one is told in {told_false} of {each:,}; {micro:,.0f} us a slow step", flush=True)
    print(f"false alarms: {alarms} of {each * len(NULLS):,} histories, {alarms / each / len(NULLS):.2%}", flush=True)
    for name, planted in PLANTED.items():
        for rate in (0.0, 0.005, 0.02):
            right = false = 0
            for _ in range(max(1, count // 100)):
                result = told(with_noise(random, planted, rate), STEPS)
                right += is_right(result.periods, planted)
                false += any(is_false(period, planted) for period in result.periods)
                longest = max(longest, result.longest_s)
            print(f"{name}, beside {rate:.1%} others: {right} of {max(1, count // 100)} right, {false} with another", flush=True)
    print(f"longest time that a slow step took: {longest * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
