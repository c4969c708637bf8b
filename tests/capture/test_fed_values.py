"""What a traced step is told of what it was fed: types, shapes and sizes, and no value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tftracer.capture.traces.fed_values import arguments_fed, values_fed


class Key(NamedTuple):
    """As TensorFlow's placeholders."""

    name: str


def test_arrays_strings_and_lists_that_are_fed() -> None:
    feeds = {
        "a": np.zeros((2, 3), np.float32),
        "b": np.array(["x", "yz"]),
        "c": [[1, 2], [3, 4], [5, 6]],
        "d": 1.5,
        "e": [["x"], [b"y"]],
    }
    found = values_fed({Key(f"{name}:0"): value for name, value in feeds.items()})
    assert found is not None
    assert {value["name"]: (value["dtype"], value["shape"], value["bytes"]) for value in found} == {
        "a:0": ("float32", [2, 3], 24),
        "b:0": ("string", [2], None),
        "c:0": ("list", [3, 2], None),
        "d:0": ("float", [], None),
        "e:0": ("string", [2, 1], None),
    }
    assert found[0]["name"] == "a:0"  # the largest first


def test_nothing_fed_and_what_is_not_known() -> None:
    assert values_fed(None) == values_fed({}) == []
    assert values_fed((np.zeros(3),)) is None  # a callable's, by place


def test_arguments_of_a_function_that_are_arrays() -> None:
    arguments = ((np.zeros(4, np.int64), object(), "text"), {"batch": {"x": [np.ones(2)]}})
    found = arguments_fed(arguments)
    assert found is not None
    assert [(value["name"], value["dtype"], value["bytes"]) for value in found] == [
        ("argument 1", "int64", 32),
        ("batch", "float64", 16),
    ]


def test_arguments_of_a_function_that_are_lists_of_numbers() -> None:
    found = arguments_fed((([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [np.ones(2)], []), {"words": ["a", "b"]}))
    assert found is not None
    assert sorted((value["name"], value["dtype"], value["shape"]) for value in found) == [
        ("argument 1", "list", [2, 3]),
        ("argument 2", "float64", [2]),
        ("words", "string", [2]),
    ]


def test_a_value_that_fails_when_it_is_looked_at() -> None:
    class Odd:
        dtype = np.dtype("float32")

        @property
        def nbytes(self) -> int:
            raise RuntimeError("odd")

    assert values_fed({Key("x:0"): Odd()}) is None
