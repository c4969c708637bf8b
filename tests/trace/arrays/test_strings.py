from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tftracer.trace.arrays.strings import Hasher, StringTable, find, hashed, numbered, table
from tftracer.trace.arrays.window import Window

strings = st.lists(
    st.one_of(st.binary(max_size=40), st.sampled_from([b"", b"\0", b"\0\0", b"x" * 1024, b"x" * 1025, b"y" * 3000])), max_size=40
)


@given(strings)
def test_equal_strings_have_one_code_in_the_order_of_their_first(values: list[bytes]) -> None:
    raw = b"".join(values)
    size = np.array([len(value) for value in values], np.int64)
    offset = np.cumsum(size) - size
    codes, first = numbered(Hasher.random().spans(Window(raw, 0, len(raw)), offset, size))
    distinct_values = list(dict.fromkeys(values))
    assert codes.tolist() == [distinct_values.index(value) for value in values]
    assert first.tolist() == [values.index(value) for value in distinct_values]
    held = table(raw, offset[first], size[first])
    assert [held.data[low:high] for low, high in zip(held.offsets[:-1], held.offsets[1:])] == distinct_values


def test_many_of_few_and_many_of_many() -> None:
    for kinds in (7, 3000, 50_000):
        values = np.random.default_rng(kinds).integers(0, kinds, 60_000).astype(np.uint64)
        hashes = values * np.uint64(0x9E3779B97F4A7C15)
        codes, first = numbered(hashes)
        assert (hashes[first][codes] == hashes).all()
        assert len(first) == len(np.unique(values))
        assert (np.diff(first) > 0).all()


def test_known_strings_that_share_a_slot() -> None:
    hashes = np.tile(np.arange(1, 101, dtype=np.uint64), 100)  # all in one slot
    codes, first = numbered(hashes)
    assert codes.tolist() == [i % 100 for i in range(10_000)]
    assert first.tolist() == list(range(100))


@pytest.mark.parametrize("text", [b"", b"cpu", b"/device:CPU:0", b"x" * 64, b"y" * 1024, b"z" * 1025])
def test_strings_that_are_all_alike(text: bytes) -> None:
    """But for the last of them, whose last byte is another."""
    raw = text * 50 + text[:-1] + b"!"
    size = np.full(51, len(text), np.int64)
    offset = np.arange(51) * len(text)
    hasher, window = Hasher.random(), Window(raw, 0, len(raw))
    alone = [int(hasher.spans(window, offset[i : i + 1], size[i : i + 1])[0]) for i in (0, 50)]
    assert hasher.spans(window, offset[:50], size[:50]).tolist() == alone[:1] * 50
    assert hasher.spans(window, offset, size).tolist() == alone[:1] * 50 + alone[1:]
    assert (alone[0] == alone[1]) is (not text)
    assert [part.tolist() for part in numbered(hasher.spans(window, offset[:50], size[:50]))] == [[0] * 50, [0]]


@given(st.lists(st.binary(max_size=12), unique=True, max_size=12))
def test_the_hashes_of_a_table_are_those_of_its_strings(values: list[bytes]) -> None:
    raw = b"".join(values)
    size = np.array([len(value) for value in values], np.int64)
    strings = table(raw, np.cumsum(size) - size, size)
    hasher, hashes = hashed(strings)
    assert hashes.tolist() == hasher.spans(Window(raw, 0, len(raw)), np.cumsum(size) - size, size).tolist()
    assert hashed(strings).hashes is hashes


def test_a_string_is_found_by_its_text() -> None:
    strings = StringTable.of(["a", "RecvTensoR", "RecvTensor", ""])
    assert [find(strings, text) for text in (b"RecvTensor", b"a", b"b", b"")] == [2, 0, -1, 3]
    assert find(StringTable.of([]), b"a") == -1


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([0, 1, 31, 32, 33, 64, 1024, 1025, 3000])), max_size=30))
def test_strings_from_anywhere_one_after_the_other(spans: list[tuple[int, int]]) -> None:
    raw = bytes(range(256)) * 12
    offset, size = np.array(spans, np.int64).reshape(-1, 2).T
    assert table(raw, offset, size).data == b"".join(raw[o : o + s] for o, s in spans)
