"""Evaluates StridedSlice. It is like Python's slices, but the bits of five masks replace syntax such as ``...`` and ``None``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Optional, Union

#: The result for one dimension: a slice; an index, which removes the dimension (int); or a new dimension of size 1 (None).
Kept = Optional[Union[slice, int]]


class Masks(NamedTuple):
    """The masks. Bit i is for the i-th entry of begin, end and strides."""

    begin: int = 0
    end: int = 0
    ellipsis: int = 0
    new_axis: int = 0
    shrink_axis: int = 0


def sliced_shape(
    shape: Sequence[int], begin: Sequence[int], end: Sequence[int], strides: Sequence[int], masks: Masks
) -> tuple[int, ...]:
    """Return the shape of the slice. Raises ValueError or IndexError for slices that TensorFlow rejects."""
    sizes, remaining = [], iter(shape)
    for kept in _entries(len(shape), begin, end, strides, masks):
        if kept is None:
            sizes.append(1)
            continue
        size = next(remaining, None)
        if size is None:
            raise IndexError
        if isinstance(kept, slice):
            sizes.append(len(range(*kept.indices(size))))
    return (*sizes, *remaining)


def sliced_values(
    values: tuple[int, ...], begin: Sequence[int], end: Sequence[int], strides: Sequence[int], masks: Masks
) -> tuple[int, ...] | None:
    """Return the slice of a vector; None if there is not exactly one entry, or if the entry is neither a slice nor an index."""
    entries = list(_entries(1, begin, end, strides, masks))
    if len(entries) != 1 or entries[0] is None:
        return None
    return values[entries[0]] if isinstance(entries[0], slice) else (values[entries[0]],)


def _entries(dimensions: int, begin: Sequence[int], end: Sequence[int], strides: Sequence[int], masks: Masks) -> Iterator[Kept]:
    """Yield what each entry of ``begin``, ``end`` and ``strides`` selects; an ellipsis yields one slice per dimension."""
    for at, (first, stop, stride) in enumerate(zip(begin, end, strides)):
        bit = 1 << at
        if masks.ellipsis & bit:
            with_dimension = sum(not (masks.new_axis | masks.ellipsis) >> each & 1 for each in range(len(begin)))
            yield from [slice(None)] * max(dimensions - with_dimension, 0)
        elif masks.new_axis & bit:
            yield None
        elif masks.shrink_axis & bit:
            yield first
        else:
            yield slice(None if masks.begin & bit else first, None if masks.end & bit else stop, stride)
