"""How a compiled function's new signature differs from those before."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tftracer.capture.functions.retracing import MAX_SIGNATURES, Signature, difference, signature_of, signatures_to_keep

USUAL: Signature = {"x": "float32[64,256]", "rate": "1"}


def spec(*sizes: int | None) -> Any:
    shape = SimpleNamespace(rank=len(sizes), as_list=lambda: list(sizes))
    return SimpleNamespace(dtype=SimpleNamespace(name="float32"), shape=shape)


def test_a_signature_has_tensors_and_python_values_by_the_names_of_the_arguments() -> None:
    given = ((spec(8, None), 5, {"k": spec(3), "n": 4}, (True, object())), {"mode": "a" * 99})
    parameters = {"x": 0, "rate": 0, "d": 0, "pair": 0}
    function = SimpleNamespace(structured_input_signature=given, function_type=SimpleNamespace(parameters=parameters))
    assert signature_of(function) == {
        "x": "float32[8,?]",
        "rate": "5",
        "d['k']": "float32[3]",
        "d['n']": "4",
        "pair[0]": "True",
        "pair[1]": "an object of object",
        "mode": "'" + "a" * 39 + "...",
    }
    assert signature_of(SimpleNamespace(structured_input_signature=given))["2"] == "5"
    assert signature_of(object()) == {}


def test_an_iterator_is_known_by_its_elements() -> None:
    """Keras 2 passes one to ``train_on_batch``: another batch size is another signature."""
    iterator = SimpleNamespace(element_spec=(spec(64, 8), spec(64, 1)))
    assert signature_of(SimpleNamespace(structured_input_signature=((iterator,), {}))) == {
        "1[0]": "float32[64,8]",
        "1[1]": "float32[64,1]",
    }


def test_a_signature_is_compared_with_the_one_that_it_is_most_like() -> None:
    odd = {"x": "float32[69,256]", "rate": "1"}
    assert (
        difference([USUAL, odd], {"x": "float32[64,256]", "rate": "499"}) == "argument rate is 499, and was traced before for 1"
    )
    assert difference([USUAL, odd], {"x": "float32[70,256]", "rate": "1"}) == (
        "argument x is float32[70,256], and was traced before for float32[69,256]"
    )


def test_of_signatures_that_are_equally_like_it_the_newest_is_named() -> None:
    """A value that counts up, more often than signatures are kept."""
    known: list[Signature] = []
    for number in range(3 * MAX_SIGNATURES):
        new = {**USUAL, "k": f"{number}.0"}
        assert difference(known, new) == (f"argument k is {number}.0, and was traced before for {number - 1}.0" if number else "")
        known = signatures_to_keep(known, new)
        assert len(known) <= MAX_SIGNATURES and known[0]["k"] == "0.0" and known[-1] == new


def test_what_has_no_difference_is_said_to_have_none() -> None:
    assert difference([], USUAL) == ""
    assert "as before" in difference([USUAL], USUAL)
    assert difference([USUAL], {"x": USUAL["x"]}) == "argument rate is missing"
    many = {f"a{number}": "2" for number in range(5)}
    assert difference([dict.fromkeys(many, "1")], many).endswith(
        "argument a2 is 2, and was traced before for 1; more differences: 2"
    )
