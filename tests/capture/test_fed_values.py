"""What a traced step is told of what it was fed: types, shapes and sizes, and no value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tftracer.capture.traces.fed_values import describe_arguments, describe_fed_values


class Key(NamedTuple):
    """As TensorFlow's placeholders."""

    name: str
    dtype: Any = None


class Dtype(NamedTuple):
    """As TensorFlow's."""

    as_numpy_dtype: Any


FLOAT32 = Dtype(np.float32)


def test_arrays_strings_and_lists_that_are_fed() -> None:
    feeds = {
        "a": np.zeros((2, 3), np.float32),
        "b": np.array(["x", "yz"]),
        "c": [[1, 2], [3, 4], [5, 6]],
        "d": 1.5,
        "e": [["x"], [b"y"]],
    }
    found = describe_fed_values({Key(f"{name}:0"): value for name, value in feeds.items()})
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
    assert describe_fed_values(None) == describe_fed_values({}) == []
    assert describe_fed_values((np.zeros(3),)) is None  # a callable's, by place


def test_arguments_of_a_function_that_are_arrays() -> None:
    arguments = ((np.zeros(4, np.int64), object(), "text"), {"batch": {"x": [np.ones(2)]}})
    found = describe_arguments(arguments)
    assert found is not None
    assert [(value["name"], value["dtype"], value["bytes"]) for value in found] == [
        ("argument 1", "int64", 32),
        ("batch", "float64", 16),
    ]


def test_arguments_of_a_function_that_are_lists_of_numbers() -> None:
    found = describe_arguments((([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], [np.ones(2)], []), {"words": ["a", "b"]}))
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

    assert describe_fed_values({Key("x:0"): Odd()}) is None


def test_the_type_of_the_tensor_that_a_value_becomes() -> None:
    feeds = {
        Key("x:0", FLOAT32): np.zeros((2, 3)),
        Key("list:0", FLOAT32): [1.0, 2.0],
        Key("objects:0", FLOAT32): np.array([1.0, 2.0], object),
        Key("words:0", Dtype(np.object_)): np.array(["a"]),
        "name:0": np.zeros(2),
    }
    found = {value["name"]: (value["dtype"], value["tensor_dtype"]) for value in describe_fed_values(feeds) or []}
    assert found == {
        "x:0": ("float64", "float32"),
        "list:0": ("list", "float32"),
        "objects:0": ("object", "float32"),
        "words:0": ("string", "string"),
        "name:0": ("float64", ""),
    }


def test_the_type_that_the_signature_of_a_function_gives_an_argument() -> None:
    found = describe_arguments(((np.zeros(4), np.zeros(2)), {"more": np.zeros(1)}), [Key("x", FLOAT32)])
    assert found is not None
    assert [(value["name"], value["tensor_dtype"]) for value in found] == [
        ("argument 1", "float32"),
        ("argument 2", ""),
        ("more", ""),
    ]


def test_arrays_that_are_not_in_c_order_and_lists_of_arrays() -> None:
    whole = np.zeros((6, 4), np.float32)
    feeds = {"c": whole, "fortran": np.asfortranarray(whole), "part": whole[:, ::2], "rows": list(whole), "cut": whole[2:]}
    found = {value["name"]: value for value in describe_fed_values(feeds) or []}
    assert {name: value["copied"] for name, value in found.items()} == {
        "c": "",
        "fortran": "order",
        "part": "order",
        "rows": "list",
        "cut": "",
    }
    assert (found["rows"]["dtype"], found["rows"]["shape"], found["rows"]["bytes"]) == ("float32", [6, 4], 96)


def test_a_sparse_tensor_is_fed_an_array_for_each_of_its_parts() -> None:
    class Sparse(NamedTuple):
        indices: Any
        values: Any

    value = Sparse(np.zeros((5, 2), np.int64), np.zeros(5))
    found = describe_fed_values({Sparse(Key("s/indices:0", Dtype(np.int64)), Key("s/values:0", FLOAT32)): value})
    assert [(each["name"], each["dtype"], each["tensor_dtype"]) for each in found or []] == [
        ("s/indices:0", "int64", "int64"),
        ("s/values:0", "float64", "float32"),
    ]
