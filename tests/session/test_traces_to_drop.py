"""Which traces make way: the slowest stay before the newest."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from call_count import calls_of
from fake_source import a_trace
from recording import LOSS, RAW, TRAIN, X, captured, recording

from tftracer.contract.session import AskedBy
from tftracer.session.live import Recorder
from tftracer.session.model import TraceState
from tftracer.session.traces.traces_to_drop import Retention
from tftracer.storage.spool import NOWHERE
from tftracer.trace.model import TraceContext


def traced(recorder: Recorder, durations_ms: list[int], asked_by: AskedBy) -> list[int | None]:
    """The steps whose traces are kept."""
    for number, duration in enumerate(durations_ms, start=1):
        start = number * 1_000_000_000
        capture = captured(recorder, RAW, asked_by)
        recorder.queue.add(((TRAIN, LOSS), (X,), None, start, start + duration * 1_000_000, 1, capture))
        assert recorder.flush()
    (run,) = recorder.runs()
    return [trace["step"] for trace in run["traces"]]


def test_of_steps_traced_because_they_may_be_slow_the_slowest_stay(tmp_path: Path) -> None:
    with recording(tmp_path, keep_traces=3) as recorder:
        assert traced(recorder, [300, 10, 200, 10, 10, 100, 10, 10], "slow") == [1, 3, 6]


def test_of_all_steps_the_newest_stay_and_the_slowest_in_half_of_the_places(tmp_path: Path) -> None:
    with recording(tmp_path, keep_traces=5) as recorder:
        assert traced(recorder, [50, 10, 300, 10, 200, 10, 10, 10, 10, 10, 10], "global") == [3, 5, 9, 10, 11]


def test_of_equal_steps_the_newest_stay_and_of_one_place_the_newest_has_it(tmp_path: Path) -> None:
    with recording(tmp_path, keep_traces=2) as recorder:
        assert traced(recorder, [10, 11, 12, 11, 10], "script") == [4, 5]
    with recording(tmp_path, keep_traces=1) as recorder:
        assert traced(recorder, [10, 500, 10], "global") == [3]


def test_eight_times_the_kept_traces_make_no_new_trace_dearer() -> None:
    """All that a user asked for one by one stay, and may be thousands."""

    def kept(count: int) -> Retention:
        retention = Retention()
        for number in range(count):
            retention.add(state(number))
        return retention

    def one_more(retention: Retention) -> None:
        retention.add(state(10_000))
        assert not retention.superfluous(1, 5) and not retention.over_the_cap(1 << 30)

    few, many = (calls_of(partial(one_more, kept(count))) for count in (100, 800))
    assert few == many


def state(number: int) -> TraceState:
    return TraceState(a_trace(number, 1), TraceContext(), NOWHERE)
