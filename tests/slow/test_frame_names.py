"""Whose code a line is."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tftracer.slow.cause import frame_names
from tftracer.slow.cause.frame_names import FrameNames, is_library
from tftracer.slow.watch_results import Frame


def frame_of(function: Callable[..., Any]) -> Frame:
    """Its first line, as it is read from outside: by its file, line and name."""
    code = function.__code__
    return FrameNames().frame(code.co_filename, code.co_firstlineno, function.__qualname__.replace("<locals>.", ""))


def test_files_of_python_and_of_packages_are_libraries() -> None:
    assert frame_of(test_files_of_python_and_of_packages_are_libraries).is_library is False
    assert frame_of(json.dumps).is_library and frame_of(pytest.main).is_library
    assert frame_of(frame_names.owner_of).is_library  # tftracer's own
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
    class Logger(callbacks):
        def on_epoch_end(self) -> None: ...

        def other(self) -> None: ...

    class Sub(Logger): ...

    assert frame_of(Logger.on_epoch_end).owner == "Logger"
    assert frame_of(Sub.on_epoch_end).owner == "Logger"  # where it is defined
    assert frame_of(callbacks.on_epoch_end).owner == "" == frame_of(Logger.other).owner
