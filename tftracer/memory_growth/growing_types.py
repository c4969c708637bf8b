"""Finds the types whose numbers of objects grow steadily, and describes these objects."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from statistics import median
from typing import Any

from tftracer.memory_growth import object_counts
from tftracer.slow.cause.frame_names import is_library

#: Kinds of TensorFlow's objects, by the names of their types.
TENSORFLOW_KINDS = {
    "ConcreteFunction": "functions",
    "Session": "sessions",
    "InteractiveSession": "sessions",
    "Operation": "ops",
    "OwnedIterator": "iterators",
    "Iterator": "iterators",
    "ResourceVariable": "variables",
    "RefVariable": "variables",
    "EagerTensor": "tensors",
}
#: The order of the kinds. Owners come first: a function has a graph with ops, an iterator has a tensor.
ORDER = ("functions", "sessions", "ops", "iterators", "variables", "tensors")
#: The order if both functions and variables grow. Then new models are the cause: retraced functions make no variables.
ORDER_OF_MODELS = ("sessions", "variables", "functions", "ops", "iterators", "tensors")
#: A type grows if it has at least this many more objects in the last count than in the first.
MIN_GROWN = 4
#: A line is named if its calls made TensorFlow trace at least this share of the newest functions.
MIN_PLACE_SHARE = 0.8
#: TensorFlow's file through which calls of functions go.
CALLS = "polymorphic_function.py"
#: Limits: things in a finding; objects of one type that are inspected; sample objects of all types.
MAX_THINGS, MAX_OBJECTS, MAX_SAMPLES = 6, 400, 100_000
MAX_SIZED = 5  # objects whose parts are measured
#: Beginnings of module names. The types of these modules are left out: their objects are parts of objects that explain more.
_LEFT_OUT_MODULES = (
    "tensorflow.",
    "builtins",
    "_",
    "weakref",
    "collections",
    "threading",
    "google.",
    "numpy",
    "tftracer.",
    "types",
    "functools",
    "keras.",
)
#: Modules of Keras whose classes are instantiated by scripts.
_KERAS = ("callbacks", "models", "layers", "optimizers", "metrics", "losses")


@dataclass(frozen=True)
class Thing:
    """Objects of one type, or compiled functions, whose number grows."""

    kind: str  # one of ORDER, or "objects"
    name: str  # name of the type, or of the functions
    grown: int | None  # number of additional objects
    rate: float | None  # objects a second
    bytes_rate: float | None  # bytes a second; None: not measured
    place: str = ""


def steady_rate(first: tuple[float, int], middle: tuple[float, int], last: tuple[float, int]) -> float | None:
    """Return a count's growth per second; None if it is not steady.

    Steady: the count grew in both spans, by MIN_GROWN or more in all, and at most four times as fast in one as in the other.
    Arguments: (time in seconds, count).
    """
    (begin, first_count), (middle_time, middle_count), (end, last_count) = first, middle, last
    if min(middle_count - first_count, last_count - middle_count) < 1 or last_count - first_count < MIN_GROWN:
        return None
    rates = (
        (middle_count - first_count) / max(middle_time - begin, 1e-9),
        (last_count - middle_count) / max(end - middle_time, 1e-9),
    )
    return (last_count - first_count) / max(end - begin, 1e-9) if max(rates) <= 4 * min(rates) else None


def growing(first: object_counts.Census, middle: object_counts.Census, last: object_counts.Census) -> dict[type, float]:
    """Return type -> objects a second, for types that grew in both spans."""
    rates: dict[type, float] = {}
    for each, count in last.counts.items():
        before, then = first.counts.get(each, 0), middle.counts.get(each, 0)
        rate = steady_rate((first.at, before), (middle.at, then), (last.at, count))
        if rate is not None:
            rates[each] = rate
    return rates


def kind_of(type_: type) -> str:
    """Return the kind of a type; "" for types of Python and internal ones of TensorFlow, which explain nothing."""
    module = str(type_.__module__)
    if module.startswith("tensorflow."):
        return TENSORFLOW_KINDS.get(type_.__name__, "")
    if module.startswith("keras.") and any(part in _KERAS for part in module.split(".")):
        return "objects"
    return "objects" if module == "__main__" or not module.startswith(_LEFT_OUT_MODULES) else ""


def is_keras(type_: type) -> bool:
    """Return whether a type is a class of Keras or is derived from one."""
    return any(str(base.__module__).startswith(("keras.", "tf_keras.")) for base in type_.__mro__)


def growing_kinds(types: Iterable[type]) -> dict[type, str]:
    """Return type -> kind, for the types that have one. Ops that belong to new graphs are left out."""
    kinds = {each: kind for each in types if (kind := kind_of(each))}
    by_kind = Counter(kinds.values())
    if by_kind["functions"] or (by_kind["sessions"] and any(each.__name__ == "Graph" for each in types)):
        kinds = {each: kind for each, kind in kinds.items() if kind != "ops"}
    return kinds


def things(
    rates: dict[type, float],
    grown: dict[type, int],
    kinds: dict[type, str],
    samples: Sequence[Any],
    object_bytes: Callable[[Any], float | None],
) -> list[Thing]:
    """Describe the growing types, in the order of their kinds, "objects" last. ``samples``: some objects of these types."""
    result = []
    for each, kind in kinds.items():
        its_samples = [sample for sample in samples if type(sample) is each]
        result.append(_thing(kind, each, its_samples, grown[each], rates[each], object_bytes))
    order = ORDER_OF_MODELS if {"functions", "variables"} <= set(kinds.values()) else ORDER
    rank = {kind: number for number, kind in enumerate(order)}
    result.sort(key=lambda thing: (rank.get(thing.kind, len(ORDER)), -(thing.rate or 0)))
    return result[:MAX_THINGS]


def _thing(
    kind: str, type_: type, samples: list[Any], grown: int, rate: float, object_bytes: Callable[[Any], float | None]
) -> Thing:
    name = type_.__qualname__ if kind in ORDER else f"{type_.__module__}.{type_.__qualname__}"
    if kind == "functions":
        name = _names(_graphs(samples[:MAX_OBJECTS]))
    place = place_of_newest(samples, grown) if kind == "ops" else place_of_calls(samples, grown) if kind == "functions" else ""
    size = None
    if kind == "tensors":
        size = typical_bytes(samples[:MAX_OBJECTS], tensor_bytes)
    elif kind == "objects":
        size = typical_bytes(samples[:MAX_SIZED], object_bytes)
    return Thing(kind, name, grown, rate, None if size is None else rate * size, place)


def functions_thing(functions: Sequence[Any], grown: int, rate: float) -> Thing:
    """Describe compiled functions if not all objects were counted: ``grown`` more are alive, and ``rate`` more each second."""
    names = _names(_newest_graphs(functions, grown))
    return Thing("functions", names, grown, rate, None, place_of_calls(functions, grown))


def _names(graphs: Iterable[Any]) -> str:
    names = Counter(str(getattr(each, "name", "")) for each in graphs)
    return ", ".join(name for name, _ in names.most_common(3) if name)


def typical_bytes(objects: Iterable[Any], bytes_of: Callable[[Any], float | None]) -> float | None:
    """Return the median size; None if no size is known.

    The median ignores a few large objects, which may belong to the current step and not to the growth.
    """
    sizes = [size for each in objects if (size := bytes_of(each)) is not None]
    return median(sizes) if sizes else None


def tensor_bytes(tensor: Any) -> float | None:
    try:
        return float(tensor.shape.num_elements() * tensor.dtype.size)
    except Exception:  # a resource, a variant, or an unknown TensorFlow
        return None


def place_of_newest(ops: Sequence[Any], grown: int) -> str:
    """Return the line that made most of the newest ops, "train.py:12", from TensorFlow's record; "" if no line is the user's.

    Old ops do not count: the model's ops were made before the growth. Only ops in the same graph as ``ops[0]`` count.
    """
    graph = ops[0].graph if ops else None
    newest = heapq.nlargest(grown, (op for op in ops if op.graph is graph), key=lambda op: op._id)
    places = Counter(filter(None, map(_place_of_op, newest[:MAX_OBJECTS])))
    return places.most_common(1)[0][0] if places else ""


def place_of_calls(functions: Sequence[Any], grown: int) -> str:
    """Return the line whose calls traced MIN_PLACE_SHARE or more of the newest functions; "" if no line did.

    The line is in the traceback of the ops that TensorFlow makes for a function's arguments and captured values.
    """
    newest = _newest_graphs(functions, grown)
    places = Counter(_place_of_call(inputs[0].op) for graph in newest if (inputs := getattr(graph, "inputs", None)))
    place, count = places.most_common(1)[0] if places else ("", 0)
    return place if count >= MIN_PLACE_SHARE * len(newest) else ""


def _newest_graphs(functions: Sequence[Any], grown: int) -> list[Any]:
    return heapq.nlargest(min(grown, MAX_OBJECTS), _graphs(functions), key=_number_of)


def _graphs(functions: Iterable[Any]) -> Iterable[Any]:
    return filter(None, (getattr(each, "graph", None) for each in functions))


def _number_of(graph: Any) -> int:
    """Return the number of a graph in the order of creation, from "graph-key-12/"."""
    digits = "".join(filter(str.isdigit, str(getattr(graph, "_graph_key", ""))))
    return int(digits or 0)


def _place_of_call(op: Any) -> str:
    """Return the user's line that called the outermost function in which the op was made."""
    place = ""
    for filename, line, *_ in getattr(op, "traceback", None) or []:
        if place and filename.endswith(CALLS):
            break
        if not is_library(filename):
            place = f"{PurePath(filename).name}:{line}"
    return place


def _place_of_op(op: Any) -> str:
    for filename, line, *_ in reversed(list(getattr(op, "traceback", None) or [])):
        if not is_library(filename):
            return f"{PurePath(filename).name}:{line}"
    return ""
