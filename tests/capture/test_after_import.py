"""Functions that are called when a module has been imported."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tftracer.capture.after_import import after_import


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "imported_later.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    yield "imported_later"
    sys.modules.pop("imported_later", None)
    assert sys.meta_path == finders


def test_each_is_called_once_when_the_module_is_there(module: str) -> None:
    calls: list[int] = []
    for number in range(3):
        after_import(module, lambda number=number: calls.append(number))  # type: ignore[misc]
    assert calls == []
    importlib.import_module(module)
    importlib.import_module(module)
    after_import(module, lambda: calls.append(3))
    assert calls == [0, 1, 2, 3]


def test_one_that_was_cancelled_is_not_called(module: str) -> None:
    calls: list[str] = []
    cancel = after_import(module, lambda: calls.append("cancelled"))
    after_import(module, lambda: calls.append("called"))
    cancel()
    cancel()
    importlib.import_module(module)
    assert calls == ["called"]


def test_many_that_wait_for_a_module_look_for_it_once() -> None:
    """Each used to ask all others: forty of them 2 ** 40 times."""
    cancels = [after_import("no_such_module_here", lambda: None) for _ in range(40)]
    assert importlib.util.find_spec("no_such_module_here") is None
    for cancel in cancels:
        cancel()


def broken() -> None:
    raise ZeroDivisionError


def test_a_fault_of_one_keeps_no_other_from_being_called(module: str) -> None:
    calls: list[str] = []
    after_import(module, broken)
    after_import(module, lambda: calls.append("called"))
    importlib.import_module(module)
    assert calls == ["called"]
