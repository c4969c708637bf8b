"""Steps that are expected to be slow are claimed by their number, and only if the extra time allows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter_ns

import pytest
from recording import LOSS, TRAIN, X, captured, recording, step, steps

from tftracer.capture.traces import backlog as trace_backlog
from tftracer.capture.traces.requests import Claim, TraceRequests
from tftracer.capture.traces.trace_expected_slow_steps import MAX_REQUESTS, MAX_TRACES, PATIENCE_NS, ExpectedTraces
from tftracer.run_handle import RunHandle
from tftracer.slow.watch.find_slow_turns import SlowTurnFinder

MS = 1_000_000


@pytest.fixture
def tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is imported there is something to trace with."""
    monkeypatch.setitem(sys.modules, "tensorflow", sys)


def test_only_the_expected_step_of_the_run_is_claimed(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        queue, requests = recorder.queue, recorder.queue.requests
        steps(recorder, 3)
        run = queue.runs.family([TRAIN, LOSS], [X]).plain
        requests.expect(run, range(5, 6))
        assert requests.slow_path
        assert queue.claim([LOSS], [X], None) is None  # another run
        assert queue.claim([TRAIN, LOSS], [X], None) is None  # the fourth
        step(recorder, 4)  # counted when the next one asks
        claim = queue.claim([TRAIN, LOSS], [X], None)
        assert isinstance(claim, Claim) and claim.asked_by == "slow"
        requests.complete(claim)
        assert not requests.slow_path and queue.claim([TRAIN, LOSS], [X], None) is None


def test_a_step_that_has_passed_is_not_waited_for(tmp_path: Path) -> None:
    with recording(tmp_path) as recorder:
        steps(recorder, 9)
        run = recorder.queue.runs.family([TRAIN, LOSS], [X]).plain
        recorder.queue.requests.expect(run, range(5, 7))
        assert recorder.queue.claim([TRAIN, LOSS], [X], None) is None and not recorder.queue.requests.slow_path


def test_nobody_waits_for_the_disk_to_trace_an_expected_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_backlog, "MAX_BYTES_OF_MANY", 0)
    with recording(tmp_path) as recorder:
        steps(recorder, 3)
        waiting = [captured(recorder, b"x") for _ in range(trace_backlog.FEW_TRACES)]
        recorder.queue.backlog.wait_s = 3600
        run = recorder.queue.runs.family([TRAIN, LOSS], [X]).plain
        recorder.queue.requests.expect(run, range(4, 5))
        assert recorder.queue.claim([TRAIN, LOSS], [X], None) is None
        for capture in waiting:
            recorder.queue.backlog.remove(capture)


def training(steps: int, traced: int = 0, extra_ms: int = 0, milliseconds: int = 50) -> tuple[SlowTurnFinder, RunHandle]:
    """Steps of this length, some of them traced as expected ones, that take longer then."""
    slow, run, now = SlowTurnFinder(3.0), RunHandle("train", (), (), ""), 1_000_000_000
    for number in range(steps):
        is_traced = 20 <= number < traced + 20
        end = now + (milliseconds + (extra_ms if is_traced else 0)) * MS
        run.steps += 1
        slow.step(run, 7, now, end, "slow" if is_traced else None)
        now = end + MS
    return slow, run


def expecting(requests: TraceRequests, slow: SlowTurnFinder, clock: Callable[[], int] = perf_counter_ns) -> ExpectedTraces:
    traces = ExpectedTraces(requests, lambda: None, clock)
    traces.set_steps(slow)
    return traces


@pytest.mark.usefixtures("tensorflow")
def test_an_expected_step_is_requested_when_it_is_near() -> None:
    slow, run = training(290)
    requests = TraceRequests()
    traces = expecting(requests, slow)
    traces.update([(run, 388, 388)])
    assert not requests.is_expected([run])
    run.steps = 387
    traces.update([(run, 388, 388)])
    assert requests.is_expected([run])


@pytest.mark.usefixtures("tensorflow")
def test_of_long_steps_it_is_requested_while_the_one_before_it_is_under_way() -> None:
    slow, run = training(300, milliseconds=2000)
    requests = TraceRequests()
    traces = expecting(requests, slow)
    traces.update([(run, 303, 303)])
    assert not requests.is_expected([run])
    run.steps = 301
    traces.update([(run, 303, 303)])
    assert requests.is_expected([run])


@pytest.mark.usefixtures("tensorflow")
def test_a_step_that_never_comes_is_given_up_after_some_seconds() -> None:
    """A run that has ended for good, while others go on."""
    slow, run = training(387)
    now, requests, clock = 10**9, TraceRequests(), lambda: now
    traces = expecting(requests, slow, clock)
    traces.update([(run, 388, 388)])
    now += PATIENCE_NS
    traces.update([])
    assert requests.slow_path  # it may come yet
    now += PATIENCE_NS
    traces.update([(run, 388, 388)])
    assert not requests.slow_path and not requests.is_expected([run])


@pytest.mark.usefixtures("tensorflow")
def test_nothing_is_waited_for_when_the_watch_ends() -> None:
    slow, run = training(387)
    requests = TraceRequests()
    traces = expecting(requests, slow)
    traces.update([(run, 388, 388)])
    assert requests.slow_path
    traces.cancel()
    assert not requests.slow_path


@pytest.mark.usefixtures("tensorflow")
def test_traces_take_at_most_one_percent_of_the_time() -> None:
    for extra_ms, wanted in ((1, True), (65, False)):
        slow, run = training(600, traced=4, extra_ms=extra_ms)
        requests = TraceRequests()
        expecting(requests, slow).update([(run, 601, 601)])
        assert requests.is_expected([run]) == wanted


@pytest.mark.usefixtures("tensorflow")
def test_a_few_slow_steps_are_traced_of_each_run() -> None:
    slow, run = training(5000)
    requests = TraceRequests()
    traces = expecting(requests, slow)
    for _ in range(MAX_TRACES):
        traces.count_traced_slow_step(run)
    traces.update([(run, 5001, 5001)])
    assert not requests.is_expected([run])


@pytest.mark.usefixtures("tensorflow")
def test_expected_steps_that_are_not_slow_do_not_push_out_traces_for_ever() -> None:
    slow, run = training(5000)
    requests, asked = TraceRequests(), 0
    traces = expecting(requests, slow)
    for number in range(5001, 9000, 97):
        run.steps = number - 1
        traces.update([(run, number, number)])
        asked += requests.is_expected([run])
        traces.cancel()
    assert asked == MAX_REQUESTS


def test_without_tensorflow_nothing_is_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    slow, run = training(600)
    requests = TraceRequests()
    expecting(requests, slow).update([(run, 601, 601)])
    assert not requests.is_expected([run])


@pytest.mark.usefixtures("tensorflow")
def test_a_slow_step_that_its_trace_made_far_longer_is_not_traced_again() -> None:
    slow, run, now = SlowTurnFinder(3.0), RunHandle("train", (), (), ""), 1_000_000_000
    for number in range(300):
        took = 20_000 if number == 200 else 1_000 if number % 50 == 49 else 10
        run.steps += 1
        slow.step(run, 7, now, now + took * MS, "slow" if number == 200 else None)
        now += (took + 1) * MS
    traces = expecting(requests := TraceRequests(), slow)
    traces.count_traced_slow_step(run)
    traces.update([(run, 301, 301)])
    assert not requests.is_expected([run])
