"""Which run a step belongs to."""

from __future__ import annotations

import collections
from types import SimpleNamespace
from typing import Any

import pytest
from recording import LOSS, TRAIN, Tensor, X

from tftracer.capture.steps.run_identity import ObjectKeys, describe, leaves, shorten

Pair = collections.namedtuple("Pair", "a b")


@pytest.mark.parametrize(
    "make",
    [
        lambda: LOSS,
        lambda: [TRAIN, LOSS],
        lambda: (TRAIN, [LOSS]),
        lambda: {"a": TRAIN, "b": [LOSS]},
        lambda: Pair(TRAIN, {"x": LOSS}),
        lambda: ["train", "loss:" + "0"],
    ],
)
def test_new_containers_have_the_same_quick_key(make: Any) -> None:
    keys = ObjectKeys()
    assert keys(make(), {X: 1}) == keys(make(), {X: 2})
    assert keys(make(), {X: 1}) != keys(make(), None)
    hash(keys(make(), {X: 1}))


def test_a_list_that_was_changed_has_another_key() -> None:
    keys, inner = ObjectKeys(), [LOSS]
    before = keys([inner], None)
    inner.append(TRAIN)
    assert keys([inner], None) != before


def test_names_in_any_order_and_container() -> None:
    assert describe([TRAIN, LOSS], {X: 1}).key == describe({"l": LOSS, "t": TRAIN}, {X: 2}).key
    assert describe([TRAIN], None).key != describe([TRAIN, LOSS], None).key
    assert describe([TRAIN], None).key != describe([TRAIN], {X: 1}).key


def test_objects_that_are_no_tensors_are_named_all_the_same() -> None:
    sparse = SimpleNamespace(values=Tensor("sparse/values:0"))
    assert describe([sparse, b"bytes:0", object(), None], None).fetches == (
        "sparse/values:0",
        "bytes:0",
        "<object>",
        "<NoneType>",
    )


def test_titles() -> None:
    assert describe([TRAIN, LOSS], {X: 1}).title() == "train, loss (feeding x)"
    assert describe([TRAIN], None).title("timeout_in_ms: 5") == "train [timeout_in_ms: 5]"
    assert describe([], None).title() == "nothing"
    many = describe([Tensor(f"layer{i}/some/long/name:0") for i in range(50)], None).title()
    assert len(many) < 120 and many.endswith(" more") and "at least" not in many
    cut = describe([Tensor(f"value{i}:0") for i in range(1_500)], None).title()
    assert cut.startswith("value0, value1, ") and " and at least " in cut
    assert shorten("a" * 30 + "/" + "b" * 30 + "/loss:0") == "b" * 30 + "/loss"


def test_leaves_are_what_keys_hold_ids_of() -> None:
    assert leaves([TRAIN, {"a": LOSS}, "name"], {X: 1, "y:0": 2}) == [TRAIN, LOSS, X]


def test_fetches_that_contain_themselves() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(ValueError, match="too deep"):
        ObjectKeys()(endless, None)
