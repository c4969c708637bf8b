"""What watching compiled functions costs is measured on the path of a call that is not traced."""

from __future__ import annotations

from tftracer.capture.own_cost_of_call import KnownFunction, measure_call_cost, wrapped_noop
from tftracer.capture.steps.queue import StepQueue


def test_the_cost_of_a_call_is_measured() -> None:
    cost = measure_call_cost()
    assert cost is not None and cost > 0


def test_what_is_measured_records_a_call_that_came_to_a_known_function() -> None:
    queue = StepQueue()
    wrapped_noop(queue)(None)
    (event,) = queue.events
    function, concrete, start_ns, end_ns, *_, traced = event
    assert function is None and isinstance(concrete, KnownFunction) and 0 < start_ns <= end_ns and traced is None
    assert not queue.failures
