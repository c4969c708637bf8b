"""Stacks: what is counted, what is named, and that nothing of the script is kept alive."""

from __future__ import annotations

import gc
import inspect
import json
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from tftracer.capture import frame_names, stack_sampler
from tftracer.capture.frame_names import FrameNames, is_library
from tftracer.capture.stack_sampler import StackCounts, stack_of


class Big:
    """Something that a script holds in a local variable."""


def deep(times: int) -> stack_sampler.Stack:
    return deep(times - 1) if times else stack_of(inspect.currentframe())


def test_a_stack_is_the_lines_from_the_innermost_and_bounded() -> None:
    stack = deep(3)
    assert [code.co_name for code, _ in stack[:5]] == ["deep"] * 4 + ["test_a_stack_is_the_lines_from_the_innermost_and_bounded"]
    assert len(deep(300)) == stack_sampler.MAX_FRAMES
    assert stack_of(None) == ()


def test_the_scripts_objects_are_not_kept_alive() -> None:
    counts = StackCounts()

    def holds() -> weakref.ref[Big]:
        big = Big()
        counts.add(stack_of(inspect.currentframe()), 0.005)
        return weakref.ref(big)

    alive = holds()
    gc.collect()
    assert alive() is None
    (folded,) = counts.folded(FrameNames(), "MainThread")
    assert folded.frames[-1].function == "holds"


def test_equal_stacks_are_counted_and_the_longest_come_first() -> None:
    counts, short, long = StackCounts(), deep(1), deep(2)
    for _ in range(3):
        counts.add(short, 0.005, state="S")
    counts.add(long, 0.3, late=True, state="D")
    first, second = counts.folded(FrameNames(), "MainThread", scale=2.0)
    assert (first.samples, first.seconds, first.late_samples, first.disk_samples, first.waiting_samples) == (1, 0.6, 1, 1, 0)
    assert (second.samples, second.seconds, second.late_samples, second.waiting_samples) == (3, pytest.approx(0.03), 0, 3)
    assert first.frames[-1].function == "deep" and first.frames[0].file != "" and counts.samples == 4


def test_distinct_stacks_are_bounded_and_what_is_left_out_is_counted() -> None:
    counts = StackCounts()
    code = test_distinct_stacks_are_bounded_and_what_is_left_out_is_counted.__code__
    for line in range(1000):
        counts.add(((code, line),), 0.001)
    assert len(counts.folded(FrameNames(), "")) == stack_sampler.MAX_STACKS
    assert counts.samples_left_out == 1000 - stack_sampler.MAX_STACKS


def test_files_of_python_and_of_packages_are_libraries() -> None:
    names = FrameNames()
    assert names.frame(test_files_of_python_and_of_packages_are_libraries.__code__, 3).is_library is False
    assert names.frame(json.dumps.__code__, 3).is_library and names.frame(pytest.main.__code__, 3).is_library
    assert names.frame(stack_of.__code__, 3).is_library  # tftracer's own
    assert is_library("<frozen runpy>") and is_library("<__array_function__ internals>")
    assert not is_library("<stdin>") and not is_library("<ipython-input-3-abc>")


@pytest.fixture
def callbacks(monkeypatch: pytest.MonkeyPatch) -> Iterator[type]:
    """A base class where Keras has its own."""
    module: Any = type(sys)("keras.src.callbacks")

    class Callback:
        def on_epoch_end(self) -> None: ...

    module.Callback = Callback
    for name, _ in frame_names.CALLBACKS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "keras.src.callbacks", module)
    yield Callback


def test_a_callbacks_method_is_named_by_its_class(callbacks: Any) -> None:
    class Logger(callbacks):  # type: ignore[misc]
        def on_epoch_end(self) -> None: ...

        def other(self) -> None: ...

    class Sub(Logger): ...

    names = FrameNames()
    assert names.frame(Logger.on_epoch_end.__code__, 1).owner == "Logger"
    assert names.frame(Sub.on_epoch_end.__code__, 1).owner == "Logger"  # where it is defined
    assert names.frame(callbacks.on_epoch_end.__code__, 1).owner == "" == names.frame(Logger.other.__code__, 1).owner
