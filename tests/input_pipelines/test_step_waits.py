"""What steps wait for the elements of a dataset, as looks at its iterator tell."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tftracer.input_pipelines.model_proto import Model, Node
from tftracer.input_pipelines.saved_pipelines import Reading
from tftracer.input_pipelines.waits import StepWaits


@dataclass
class Ledger:
    """Of a training that evaluates at these times."""

    evaluation: set[float] = field(default_factory=set)
    waits: int = 0  # between steps
    now: float = 0.0
    waited: float = 0.0  # within them

    def input_waits(self) -> tuple[float, int]:
        return 0.0, self.waits

    def evaluates(self) -> bool:
        return self.now in self.evaluation

    def add_step_wait(self, title: str, seconds: float) -> None:
        self.waited += seconds


def look(at: float, elements: int, gaps: list[float], waits: int, worked_s: float = 0.0) -> Reading:
    node = Node(1, "Prefetch", elements, int(worked_s * 1e9), 0, 6, 1.0, (), {})
    return Reading(at, 0.0, None, 0.0, waits, b"", Model({1: node}, 1, 2, tuple(gaps[-100:])))


def looked(ledger: Ledger, gap_s: float, wait_s: float, explicit: bool = False) -> float:
    """Ten seconds of a training that waits for each element, with a look a second."""
    step_waits = StepWaits("files", ledger)
    for second in range(11):
        ledger.now = float(second)
        elements = round(second / (gap_s + wait_s))
        ledger.waits = elements if explicit else 0
        step_waits.look(look(float(second), elements, [gap_s] * max(0, elements - 1), ledger.waits, elements * wait_s))
    step_waits.end()
    return ledger.waited


@pytest.mark.parametrize(("gap_s", "wait_s"), [(0.01, 0.04), (0.05, 0.0), (0.001, 0.004), (0.3, 0.7)])
def test_steps_wait_for_what_the_times_between_two_calls_leave(gap_s: float, wait_s: float) -> None:
    """But for the wait for the first element: when that began is not known."""
    assert looked(Ledger(), gap_s, wait_s) == pytest.approx(10 * wait_s / (gap_s + wait_s), abs=0.1 + gap_s + wait_s)


def test_what_a_training_builds_before_it_asks_for_an_element_is_no_wait_for_it() -> None:
    """`fit` makes its iterator and then traces its function for a second; the stages worked for 2 ms."""
    ledger = Ledger()
    step_waits = StepWaits("files", ledger)
    for at, elements in ((0.0, 0), (1.27, 5), (1.53, 15)):
        step_waits.look(look(at, elements, [0.026] * max(0, elements - 1), 0, worked_s=0.002))
    step_waits.end()
    assert ledger.waited <= 0.004


def test_waits_between_steps_and_in_evaluations_are_others() -> None:
    assert looked(Ledger(), 0.01, 0.04, explicit=True) == 0
    assert looked(Ledger(evaluation=set(map(float, range(1, 6)))), 0.01, 0.04) == pytest.approx(4, abs=0.1)


def test_a_slow_step_before_the_known_times_is_no_wait_where_all_stages_are_timed() -> None:
    """A callback took 1.7 s; TensorFlow then knows only the last 100 of 120 times between two elements."""
    ledger = Ledger()
    step_waits = StepWaits("files", ledger)
    for at, elements in ((0.0, 10), (2.2, 130)):
        step_waits.look(look(at, elements, [0.004] * 120, 0, worked_s=elements * 1e-6))
    step_waits.end()
    assert 0 <= ledger.waited < 0.01
