"""Rate limits: the token bucket, and the limits of the server's answers while this process trains.

Sending a ready answer takes about 4 ms of Python in the training's process, and a megabyte of a saved session about 2 ms: a
client on the same machine that sent requests without a pause took 40 to 65% of a core, and held the GIL for as much of the time.
Runs on the server's loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tftracer.session.answers import SessionSource
from tftracer.web.worker_threads import WorkerThreads

#: Opening a trace takes about ten answers.
ANSWERS_PER_S, ANSWER_BURST = 10, 100
#: Half of a 1 Gbit/s network; at 100 MB/s saving a session cost the training 2.4% of its median step.
BYTES_PER_S, BYTE_BURST = 60e6, 32e6
SHORTEST_WAIT_S = 0.001  # a shorter wait is not worth its timer


class TokenBucket:
    """Allows ``per_second`` in the long run and, after a pause, ``burst`` at once."""

    def __init__(self, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._burst = burst
        self._clock = clock
        self._level = burst  # below 0: in debt
        self._filled_at = clock()

    def spend(self, amount: float = 1) -> float:
        """Take this amount, going into debt if necessary; return the seconds until the debt is paid."""
        self._fill()
        self._level -= amount
        return self._seconds_until(0)

    def wait_s(self) -> float:
        """Return the seconds until 1 is available; 0: now."""
        self._fill()
        return self._seconds_until(1)

    def refund(self) -> None:
        """Give 1 of the spent amount back."""
        self._level = min(self._level + 1, self._burst)

    def reset(self) -> None:
        self._level = self._burst

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(self._level + (now - self._filled_at) * self._per_second, self._burst)
        self._filled_at = now

    def _seconds_until(self, level: float) -> float:
        wait_s = (level - self._level) / self._per_second
        return wait_s if wait_s > SHORTEST_WAIT_S else 0.0


class RateLimit:
    """Limits a server's answers and downloads, but only in a process that trains."""

    def __init__(self, source: SessionSource, quick_workers: WorkerThreads) -> None:
        self._source = source
        self._quick_workers = quick_workers
        self._answers = TokenBucket(ANSWERS_PER_S, ANSWER_BURST)
        self._bytes = TokenBucket(BYTES_PER_S, BYTE_BURST)

    async def wait_to_answer(self) -> None:
        """Wait until the rate allows one more answer."""
        await self._wait(self._answers, 1)

    async def wait_to_send(self, size: int) -> None:
        """Wait until the rate allows a piece of a download; ``size``: its bytes."""
        await self._wait(self._bytes, size)

    async def _wait(self, bucket: TokenBucket, amount: float) -> None:
        wait_s = bucket.spend(amount)
        if wait_s and await asyncio.wrap_future(self._quick_workers.submit(self._is_training)):
            await asyncio.sleep(wait_s)
        elif wait_s:
            bucket.reset()

    def _is_training(self) -> bool:
        return self._source.session()["active"]
