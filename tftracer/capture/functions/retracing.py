"""Tells why TensorFlow traced a compiled function again, and reports functions that it traces at nearly every call.

A function is traced for each new signature: a new shape or type of an argument, or a new Python value.

Reads attributes of TensorFlow's objects and never raises: an attribute that is not as expected is left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

#: Argument -> its text: "x" -> "float32[32,8]", "rate" -> "0.1".
Signature = dict[str, str]

#: TensorFlow traces a function too often if the function has MANY_SIGNATURES signatures, and on average fewer than CALLS_EACH
#: calls for each.
MANY_SIGNATURES, CALLS_EACH = 4, 5
#: Maximum number of differences that a text names, and of characters of a Python value in it.
MAX_DIFFERENCES, MAX_VALUE = 3, 40
MAX_SIGNATURES = 16  # maximum number of signatures kept for each label, to compare new signatures with
#: Python types whose values are shown, and compared, as their ``repr``.
VALUE_TYPES = (bool, int, float, complex, str, bytes, type(None))
SAME_ARGUMENTS = (
    "its arguments are as before: the script created the function anew, or something other than the arguments, on which the "
    "function depends, changed"
)


class Retracing:
    """The signatures of all compiled functions, by the function's label: its name and definition."""

    def __init__(self) -> None:
        self._signatures: dict[str, tuple[int, list[Signature]]] = {}  # label -> (number of signatures, the kept signatures)

    def __len__(self) -> int:
        return len(self._signatures)

    def count(self, label: str) -> int:
        """Return the number of a function's signatures."""
        return self._signatures[label][0] if label in self._signatures else 0

    def add(self, label: str, concrete: Any, function: Any = None) -> str:
        """Add a function's new signature. Return how it differs from the function's earlier ones; "" for the first signature.

        ``function``: the tf.function. Signatures for which it was traced before its first counted call count as earlier ones.
        """
        signature = signature_of(concrete)
        count, known = self._signatures.get(label) or (0, _earlier_signatures(function, concrete, signature))
        self._signatures[label] = (count + 1, signatures_to_keep(known, signature))
        return difference(known, signature)

    def problem(self, label: str, calls: int, changed: str) -> str:
        """Return a text for the page if a function is traced too often; else "".

        ``calls``: the number of its counted calls before the current one. ``changed``: what ``add`` returned for the current one.
        """
        count = self.count(label)
        # If calls < count - 1, some calls were not counted, as their run is above the maximum number of runs.
        if count < MANY_SIGNATURES or not count - 1 <= calls < CALLS_EACH * count:
            return ""
        return (
            f"{label} was traced {count} times in {calls + 1} calls: {changed}. Each tracing builds the graph again. Pass "
            "tensors of one shape and type, or give the function an input_signature."
        )


class _ObjectText(str):
    """The text of an argument that TensorFlow compares by object identity."""

    reference: Any  # TensorFlow's weak reference to the object; references to one object are equal

    @classmethod
    def from_reference(cls, reference: Any) -> _ObjectText:
        value = reference._ref()
        text = cls("an object" if value is None else f"an object of {type(value).__name__}")  # None: the object was deleted
        text.reference = reference
        return text


def signature_of(concrete: Any) -> Signature:
    """Return the name and text of each argument of a ConcreteFunction. Captured variables are not listed."""
    signature: Signature = {}
    with contextlib.suppress(Exception):
        positional, named = concrete.structured_input_signature
        names = _names(concrete)
        for number, value in enumerate(positional):
            name = names[number] if number < len(names) else str(number + 1)
            signature.update(_texts(name, value))
        for name, value in named.items():
            signature.update(_texts(str(name), value))
    with contextlib.suppress(Exception):
        for name, parameter in concrete.function_type.parameters.items():
            for path, _, kind in leaves(str(name), _unpack(parameter.type_constraint)):
                if type(kind).__name__ == "Weakref":
                    signature[path] = _ObjectText.from_reference(kind)
    return signature


def _earlier_signatures(function: Any, concrete: Any, new: Signature) -> list[Signature]:
    """Return the signatures, other than ``new``, for which TensorFlow traced a tf.function before ``concrete``; at most
    MAX_SIGNATURES."""
    with contextlib.suppress(Exception):
        # Oldest first. Calls are counted with a delay, so ``concrete`` may not be the last.
        traced = list(function._function_cache.values())
        earlier = traced[: [id(each) for each in traced].index(id(concrete))]
        return [signature for each in earlier[-MAX_SIGNATURES:] if (signature := signature_of(each)) != new]
    return []


def _unpack(kind: Any) -> Any:
    """Turn TensorFlow's type of a container into a Python dict or list of its elements' types; return other types unchanged."""
    inner = getattr(kind, "components", getattr(kind, "mapping", None))
    if isinstance(inner, dict):
        return {key: _unpack(each) for key, each in inner.items()}
    return [_unpack(each) for each in inner] if isinstance(inner, (tuple, list)) else kind


def signatures_to_keep(known: Sequence[Signature], new: Signature) -> list[Signature]:
    """Return the signatures to compare later signatures with, oldest first: half are the function's first, half its newest."""
    return [*known[: MAX_SIGNATURES // 2], *[*known[MAX_SIGNATURES // 2 :], new][-(MAX_SIGNATURES // 2) :]]


def difference(known: Sequence[Signature], new: Signature) -> str:
    """Return how ``new`` differs from the most similar signature in ``known``; "" if ``known`` is empty.

    ``known``: oldest first; of equally similar signatures the newest counts.
    """
    if not known:
        return ""
    nearest = min(reversed(known), key=lambda signature: len(_changes(signature, new)))
    changes = _changes(nearest, new)
    more = f"; more differences: {len(changes) - MAX_DIFFERENCES}" if len(changes) > MAX_DIFFERENCES else ""
    return ", ".join(changes[:MAX_DIFFERENCES]) + more if changes else SAME_ARGUMENTS


def _changes(before: Signature, after: Signature) -> list[str]:
    return [
        _change(name, before[name], after[name])
        if name in before and name in after
        else f"argument {name} {'is new' if name in after else 'is missing'}"
        for name in {**before, **after}
        if not _is_same(before.get(name), after.get(name))
    ]


def _is_same(one: str | None, other: str | None) -> bool:
    if isinstance(one, _ObjectText) and isinstance(other, _ObjectText):
        return bool(one.reference == other.reference)
    return one == other


def _change(name: str, before: str, after: str) -> str:
    if isinstance(before, _ObjectText) and isinstance(after, _ObjectText):
        return f"argument {name} is another {after.partition(' ')[2]}"
    return f"argument {name} is {after}, and was traced before for {before}"


def _names(concrete: Any) -> list[str]:
    """Return the names of a function's parameters, in order; [] if this TensorFlow does not have them."""
    with contextlib.suppress(Exception):
        return [str(name) for name in concrete.function_type.parameters]
    return []


def leaves(path: str, value: Any, key: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yield each value in nested containers: its path, its key in the innermost dictionary, the value."""
    if isinstance(value, dict):
        for inner_key, inner in value.items():
            yield from leaves(f"{path}[{inner_key!r}]", inner, str(inner_key))
    elif isinstance(value, (tuple, list)):
        for index, inner in enumerate(value):
            yield from leaves(f"{path}[{index}]", inner, key)
    else:
        yield path, key, value


def _texts(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the path and text of each value of an argument. For an iterator, which Keras 2 passes, describe its elements."""
    for leaf_path, _, leaf in leaves(path, value):
        element = getattr(leaf, "element_spec", None)
        if element is None:
            yield leaf_path, _text(leaf)
        else:
            yield from ((element_path, _text(kind)) for element_path, _, kind in leaves(leaf_path, element))


def _text(value: Any) -> str:
    if isinstance(value, VALUE_TYPES):
        text = repr(value)
        return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}..."
    return tensor_text(value) or f"an object of {type(value).__name__}"


def tensor_text(spec: Any) -> str:
    """Return "float32[32,8]" for a TensorSpec; "" for anything else."""
    dtype, shape = getattr(spec, "dtype", None), getattr(spec, "shape", None)
    if dtype is None or shape is None or not hasattr(dtype, "name"):
        return ""
    sizes = "?" if shape.rank is None else ",".join("?" if size is None else str(size) for size in shape.as_list())
    return f"{dtype.name}[{sizes}]"
