"""Containers are found by the script's names, with what their new entries take."""

from __future__ import annotations

import collections
import inspect
import sys
import threading
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tftracer.memory_growth import containers, object_counts
from tftracer.memory_growth.cause_of_growth import Finding, find_cause

SIZE = 100_000
GLOBAL: list[Any] = []
ROWS: list[Any] = []
ALIEN: list[Any] = []


class Recorder:
    def __init__(self) -> None:
        self.noted_rows: list[Any] = []  # a name that no other file has

    def note(self) -> None:
        self.noted_rows.append(np.ones(SIZE, np.uint8))


def rows_of_a_closure() -> Callable[[], None]:
    seen: list[Any] = []

    def note() -> None:
        seen.append(bytearray(SIZE))

    return note


def found(step: Callable[[], Any], rate: float = 10.0 * SIZE) -> Finding:
    """Of growth by ten steps between two looks, a second apart."""
    seconds = [0.0]

    def wait(_: float) -> bool:
        seconds[0] += 1.0
        for _ in range(10):
            step()
        return False

    finding = find_cause(rate, wait, 0.0, lambda: seconds[0])
    assert finding is not None
    return finding


def in_a_running_function(ready: threading.Event, go: threading.Semaphore, done: threading.Semaphore) -> None:
    kept: dict[int, Any] = {}
    ready.set()
    while go.acquire():
        kept[len(kept)] = [float(each) for each in range(SIZE // 32)]
        done.release()
        if len(kept) > 20:
            return


def place(text: str) -> str:
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return f"test_containers.py:{1 + next(at for at, line in enumerate(lines) if line.strip() == text)}"


def test_a_list_by_its_global_name_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_counts, "take", lambda: pytest.fail("objects are listed"))
    ROWS.clear()

    def step() -> None:
        ROWS.append(np.ones(SIZE, np.uint8))

    finding = found(step)
    (thing,) = finding.things
    assert (finding.kind, thing.name, thing.grown, finding.lists) == ("containers", "ROWS, a list", 20, 0)
    assert thing.place == place("ROWS.append(np.ones(SIZE, np.uint8))")
    ROWS.clear()


def test_an_attribute_and_a_closure() -> None:
    recorder, note = Recorder(), rows_of_a_closure()
    GLOBAL[:] = [recorder, note]
    assert found(recorder.note).things[0].place == place("self.noted_rows.append(np.ones(SIZE, np.uint8))")
    finding = found(note)
    assert (finding.things[0].name, finding.things[0].place) == ("seen, a list", place("seen.append(bytearray(SIZE))"))
    GLOBAL.clear()


def test_a_local_of_a_function_that_runs() -> None:
    ready, go, done = threading.Event(), threading.Semaphore(0), threading.Semaphore(0)
    thread = threading.Thread(target=in_a_running_function, args=(ready, go, done))
    thread.start()
    ready.wait()

    def step() -> None:
        go.release()
        done.acquire()

    finding = found(step)
    assert finding.things[0].place == place("kept[len(kept)] = [float(each) for each in range(SIZE // 32)]")
    step()
    thread.join()


def test_what_is_too_small_or_full_explains_nothing() -> None:
    GLOBAL[:] = [collections.deque(maxlen=5)]

    def step() -> None:
        GLOBAL[0].append(np.ones(SIZE, np.uint8))

    assert found(step).kind != "containers"
    assert found(lambda: GLOBAL.append(1.5)).kind != "containers"
    GLOBAL.clear()


def test_the_same_object_again_and_again_takes_no_memory() -> None:
    same = np.ones(SIZE, np.uint8)
    assert containers.entry_bytes([same] * 50) is None
    assert containers.entry_bytes([np.ones(SIZE, np.uint8) for _ in range(50)]) == SIZE


def test_a_function_that_uses_its_locals_itself_is_left_alone() -> None:
    def asks(ready: threading.Event, end: threading.Event, own: list[Any]) -> None:
        kept = [1, 2, 3]
        own.append(locals())
        ready.set()
        end.wait()
        own.append((dict(own[0]), kept))

    ready, end, own = threading.Event(), threading.Event(), list[Any]()
    thread = threading.Thread(target=asks, args=(ready, end, own))
    thread.start()
    ready.wait()
    assert not any(key.name.name == "kept" and value == [1, 2, 3] for key, value in containers.find_containers().items())
    end.set()
    thread.join()
    names, kept = own[1]
    assert names["kept"] is kept


def test_sizes_are_those_of_python() -> None:
    assert [containers.size_of(each) for each in ([1, 2], {1: 2}, "abc", np.ones(5), object())] == [2, 1, 3, 40, None]
    assert containers.bytes_of([1.5] * 10, 3) == sys.getsizeof([1.5] * 10) + 10 * sys.getsizeof(1.5)


class Forbidden(Exception):
    pass


def refuse(*_: object) -> Any:
    raise Forbidden


class Noting(list[Any]):
    """As TensorFlow's lists, which note each access."""

    noted: list[str] = []


class LazyModule(types.ModuleType):
    """As TensorFlow's, which import what they stand for when they are asked for an attribute."""

    def __getattr__(self, name: str) -> Any:
        Noting.noted.append(name)
        raise AttributeError(name)


def test_no_code_of_another_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def note(name: str) -> Callable[..., Any]:
        def method(self: Any, *arguments: Any) -> Any:
            Noting.noted.append(name)
            return getattr(list, name)(self, *arguments)

        return method

    for name in ("__len__", "__iter__", "__getitem__", "__reversed__", "__sizeof__", "__getattribute__"):
        setattr(Noting, name, note(name) if name != "__getattribute__" else refuse)
    monkeypatch.setitem(sys.modules, "lazy_one", LazyModule("lazy_one"))
    ALIEN.append(Noting())
    looks = []
    for at in range(3):
        list.extend(ALIEN[0], [Noting([at] * 50) for _ in range(100)])
        looks.append(containers.sizes(float(at)))
    (one,) = [each for each in containers.growing(*looks) if each.kind == "Noting"]
    assert (one.grown, Noting.noted) == (200, [])
    assert one.bytes_rate == pytest.approx(100 * 50 * (8 + 28), rel=0.1)


class Held:
    pass


def holds(ready: threading.Barrier, references: list[Any]) -> None:
    held = [Held()]
    references[:] = [weakref.ref(held[0]), inspect.currentframe()]
    ready.wait()
    ready.wait()
    del held
    ready.wait()
    ready.wait()


def is_found() -> bool:
    return any(key.name.name == "held" for key in containers.find_containers())


def test_locals_that_were_looked_at_are_let_go_of_and_those_that_another_uses_stay() -> None:
    ready, references = threading.Barrier(2), list[Any]()
    thread = threading.Thread(target=holds, args=(ready, references))
    thread.start()
    ready.wait()
    used = references.pop().f_locals
    assert is_found() and isinstance(used["held"][0], Held)
    del used
    threading.settrace(refuse)
    assert not is_found()
    threading.settrace(None)
    assert is_found()
    ready.wait()
    ready.wait()
    assert references[0]() is None
    ready.wait()
    thread.join()


HISTORY: dict[str, Any] = {"step": [], "loss": np.zeros(0, np.uint8)}


def test_an_array_that_is_made_anew_from_itself_under_a_key() -> None:
    def step() -> None:
        HISTORY["step"].append(1)
        HISTORY["loss"] = np.append(HISTORY["loss"], np.ones(SIZE, np.uint8))

    thing = found(step).things[0]
    assert (thing.name, thing.place) == ("HISTORY['loss'], an ndarray", place(inspect.getsource(step).splitlines()[2].strip()))
    HISTORY.clear()


def test_a_path_is_told_where_it_can_be_read() -> None:
    paths = [containers.path_of(keys) for keys in ((), ("'a'", "3"), ("'a'", "'b'", "'c'"), (str(id(Held)),))]
    assert paths == ["", "['a'][3]", "[...]", "[...]"]


MODELS: list[Any] = []


def test_the_list_that_keeps_the_models_whose_variables_grow() -> None:
    variable = type("ResourceVariable", (), {"__module__": "tensorflow.python.ops.resource_variable_ops"})
    model = type("Model", (), {"__module__": "keras.src.models.model"})

    def step() -> None:
        MODELS.append(model())
        MODELS[-1].weights = [variable() for _ in range(5)]

    finding = found(step, 1e9)
    assert [thing.name for thing in finding.things[:2]] == ["ResourceVariable", "MODELS, a list"]
    assert finding.things[0].place == place("MODELS.append(model())")
    MODELS.clear()
