"""A flood of requests is slowed down while a session trains; a person is not."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import pytest
from fake_source import FakeSource
from web_client import serving

from tftracer.web import answer_rate
from tftracer.web.answer_rate import RateLimit, TokenBucket
from tftracer.web.worker_threads import WorkerThreads


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_and_then_evenly() -> None:
    clock = Clock()
    bucket = TokenBucket(10, 5, clock)
    assert [bucket.spend() for _ in range(5)] == [0.0] * 5
    assert [round(bucket.spend(), 6) for _ in range(3)] == [0.1, 0.2, 0.3]
    clock.now += 0.8  # the debt is paid, and there is enough for a burst again
    assert [bucket.spend() for _ in range(5)] == [0.0] * 5
    assert bucket.spend() == pytest.approx(0.1)
    clock.now += 100  # a long pause earns no more than a burst
    assert [bucket.spend() for _ in range(5)] == [0.0] * 5 and bucket.spend() == pytest.approx(0.1)


def test_what_is_given_back_can_be_spent_again() -> None:
    bucket = TokenBucket(10, 2, Clock())
    bucket.refund()  # no more than a burst
    assert [bucket.spend(), bucket.spend(), bucket.wait_s()] == [0.0, 0.0, pytest.approx(0.1)]
    bucket.refund()
    assert bucket.wait_s() == 0.0


@contextlib.contextmanager
def waiting(monkeypatch: pytest.MonkeyPatch, active: bool) -> Iterator[tuple[RateLimit, list[float]]]:
    """A rate limit, and how long it made those who asked wait."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    source = FakeSource()
    monkeypatch.setattr(source, "session", lambda: {"active": active})
    workers = WorkerThreads("quick", 1)
    monkeypatch.setattr("tftracer.web.answer_rate.asyncio.sleep", sleep)
    yield RateLimit(source, workers), waits
    workers.stop()


@pytest.mark.parametrize("active", [True, False])
def test_only_a_process_that_trains_makes_anybody_wait(active: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with waiting(monkeypatch, active) as (allowed, waits):

        async def flood() -> None:
            for _ in range(answer_rate.ANSWER_BURST + 50):
                await allowed.wait_to_answer()
            for _ in range(100):
                await allowed.wait_to_send(1 << 20)

        asyncio.run(flood())
    if active:
        assert max(waits) > 0.5  # 70 MB more than may come at once
        assert sum(waits) > 50 * 50 / 2 / answer_rate.ANSWERS_PER_S  # each waits for all before it
    else:
        assert not waits


def test_answers_and_downloads_pass_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    async def wait_to_answer(self: RateLimit) -> None:
        asked.append(1)

    async def wait_to_send(self: RateLimit, size: int) -> None:
        asked.append(size)

    monkeypatch.setattr(RateLimit, "wait_to_answer", wait_to_answer)
    monkeypatch.setattr(RateLimit, "wait_to_send", wait_to_send)
    with serving(FakeSource()) as client:
        for path in ("/api/session", "/api/runs/1/steps", "/api/traces/1", "/api/traces/1/ops", "/api/session/file"):
            asked.clear()
            assert client.get(path).status == 200
            assert asked == ([1, len(b"saved session")] if path.endswith("file") else [1]), path
