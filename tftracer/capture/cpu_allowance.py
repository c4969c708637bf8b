"""How much CPU the watch may use: it measures itself, and leaves out samples when it has used its share."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter, thread_time

#: Of one core, on average.
SHARE = 0.005
#: Between two looks at the training: so long that looking alone takes at most half of the share.
TICK_S, RARE_TICK_S = 0.02, 0.08
#: That may be used at once, after a quiet time: the sampling of a stall of 20 s.
BURST_S = 0.3


class CpuAllowance:
    """Used by one thread, whose CPU time it is about. Clocks are for tests."""

    def __init__(self, clock: Callable[[], float] = perf_counter, cpu_clock: Callable[[], float] = thread_time) -> None:
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._credit_s = BURST_S
        self._at, self._cpu = clock(), cpu_clock()
        self.tick_s = TICK_S
        self.used_up = False  # now: no sampling until some credit has come back
        self.exceeded = False  # without any sampling, too: the watch must end

    def update(self, looks: int = 0) -> None:
        """To be called once a second or so; ``looks``: since the last call, if they were all that was done, else 0."""
        at, cpu = self._clock(), self._cpu_clock()
        if looks:
            self.tick_s = min(RARE_TICK_S, max(TICK_S, (cpu - self._cpu) / looks / (SHARE / 2)))
        self._credit_s = min(BURST_S, self._credit_s + (at - self._at) * SHARE - (cpu - self._cpu))
        self._at, self._cpu = at, cpu
        if self._credit_s <= 0:
            self.used_up = True
        elif self._credit_s > BURST_S / 4:
            self.used_up = False
        self.exceeded = self._credit_s < -BURST_S
