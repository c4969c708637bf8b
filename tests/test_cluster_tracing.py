"""Which step is chosen: one number ahead of all ranks that step together, each its own where they do not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tftracer.cluster.tracing import choose_steps

STATE = st.fixed_dictionaries({"begun": st.integers(0, 10**9), "steps_per_s": st.none() | st.floats(0, 1e5)})


@given(st.dictionaries(st.text(min_size=1), STATE, min_size=1), st.floats(0.1, 10))
def test_the_step_lies_ahead_of_everybody(states: dict[str, dict[str, object]], ahead_s: float) -> None:
    steps, step = choose_steps(states, True, ahead_s)
    assert set(steps.values()) == {step} and set(steps) == set(states)
    for state in states.values():
        assert step >= int(state["begun"]) + 2 + float(state["steps_per_s"] or 0.0) * ahead_s  # type: ignore[call-overload, arg-type]


@given(st.dictionaries(st.text(min_size=1), STATE, min_size=1))
def test_each_has_its_own_where_they_run_at_their_own_pace(states: dict[str, dict[str, object]]) -> None:
    steps, step = choose_steps(states, False, 0.3)
    assert step == 0
    assert all(steps[p] >= int(state["begun"]) + 2 for p, state in states.items())  # type: ignore[call-overload]
