"""What grows beside the memory: of which types there are steadily more objects, and what kind of things they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tftracer.memory_growth import census
from tftracer.memory_growth.lines import Lines, place_of
from tftracer.slow.cause.frame_names import is_library

#: Kinds of things of TensorFlow's, by the names of their types, the one first that makes the others: a function has a graph with
#: ops, an iterator a tensor.
TENSORFLOWS = {
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
ORDER = ("functions", "sessions", "ops", "iterators", "variables", "tensors")
#: So many more objects of a type, in the longer of two spans.
LEAST = 3
#: Tensors and arrays are held responsible from this part of the growth on.
SHARE = 0.3
MAX_THINGS, MAX_OBJECTS = 6, 400
#: Of modules whose objects are made by others, and named by them.
_INNER = (
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
#: A Keras object that scripts make themselves.
_KERAS = ("callbacks", "models", "layers", "optimizers", "metrics", "losses")


@dataclass(frozen=True)
class Thing:
    kind: str  # of ORDER, or objects, arrays, python
    name: str  # of the type, or of the functions
    grown: int | None  # objects more; None: not counted
    rate: float | None  # objects a second
    bytes_rate: float | None  # bytes a second; None: not measured
    place: str = ""


def growing(first: census.Census, middle: census.Census, last: census.Census) -> dict[type, float]:
    """Type -> objects a second, of those that became more in both spans."""
    found: dict[type, float] = {}
    for each, count in last.counts.items():
        before, then = first.counts.get(each, 0), middle.counts.get(each, 0)
        if min(then - before, count - then) >= 1 and count - before >= LEAST + (count - before >= 1):
            rates = (then - before) / max(middle.at - first.at, 1e-9), (count - then) / max(last.at - middle.at, 1e-9)
            if max(rates) <= 4 * min(rates):
                found[each] = (count - before) / max(last.at - first.at, 1e-9)
    return found


def kind_of(each: type) -> str:
    """ "" of types that say nothing: those of Python and of TensorFlow's insides."""
    module = str(each.__module__)
    if module.startswith("tensorflow."):
        return TENSORFLOWS.get(each.__name__, "")
    if module.startswith("keras.") and any(part in _KERAS for part in module.split(".")):
        return "objects"
    return "" if module.startswith(_INNER) else "objects"


Trace = Callable[[Any], Any]


def things(rates: dict[type, float], grown: dict[type, int], trace_of: Trace) -> list[Thing]:
    """Those with a kind, in the order of ``ORDER``, then objects. ``trace_of``: the traceback of an object's making, or None."""
    kinds = {each: kind for each in rates if (kind := kind_of(each))}
    by_kind = Counter(kinds.values())
    if by_kind["functions"] or (by_kind["sessions"] and any(each.__name__ == "Graph" for each in rates)):
        kinds = {each: kind for each, kind in kinds.items() if kind != "ops"}  # they are those of the new graphs
    samples = census.objects_of(kinds, MAX_OBJECTS * len(kinds)) if kinds else []
    found = []
    for each, kind in kinds.items():
        some = [sample for sample in samples if type(sample) is each][:MAX_OBJECTS]
        found.append(_thing(kind, each, some, trace_of, grown[each], rates[each]))
    rank = {kind: number for number, kind in enumerate(ORDER)}
    found.sort(key=lambda thing: (rank.get(thing.kind, len(ORDER)), -(thing.rate or 0)))
    return found[:MAX_THINGS]


def _thing(kind: str, of: type, samples: list[Any], trace_of: Trace, grown: int, rate: float) -> Thing:
    """Those that were made while tracemalloc was on tell where; of tensors, those of that line tell the size."""
    name = of.__qualname__ if kind in ORDER else f"{of.__module__}.{of.__qualname__}"
    made = [(place_of(trace), sample) for sample in samples if (trace := trace_of(sample)) is not None]
    place = _most(place for place, _ in made)
    if kind == "ops":
        place = place or _place_of_op(samples)
    if kind == "functions":
        name = _names(samples)
    if kind != "tensors":
        return Thing(kind, name, grown, rate, None, place)
    of_place = [sample for at, sample in made if at == place] if made else samples
    sizes = [size for sample in of_place if (size := _bytes_of(sample)) is not None]
    return Thing(kind, name, grown, rate, rate * sum(sizes) / len(sizes) if sizes else None, place)


def of_python(lines: Lines) -> list[Thing]:
    rest = Counter(lines.places)
    rest.subtract(lines.array_places)
    arrays = Thing("arrays", "NumPy arrays", None, lines.array_rate, lines.arrays, _largest(lines.array_places))
    return [arrays, Thing("python", "Python's memory", None, None, lines.python - lines.arrays, _largest(rest))]


def main_kind(found: Sequence[Thing], rate: float, is_uncollected: bool) -> tuple[str, list[Thing]]:
    """What the growth is put down to, and the things, the one of that kind first. ``rate``: bytes a second."""
    python = [thing for thing in found if thing.kind in ("arrays", "python")]
    is_pythons = sum(thing.bytes_rate or 0 for thing in python) >= SHARE * rate
    top = max(python, key=lambda thing: thing.bytes_rate or 0, default=None)

    def is_large(thing: Thing) -> bool:
        return thing.bytes_rate is not None and thing.bytes_rate >= SHARE * rate

    def is_main(thing: Thing) -> bool:
        if thing.kind == "tensors":
            return is_large(thing) or (is_pythons and top is not None and thing.place == top.place)
        if thing.kind == "objects":
            return is_pythons or not python
        return thing.kind in ORDER or is_large(thing)

    shown = [thing for thing in found if thing not in python or is_large(thing)]
    main = next((thing for thing in shown if is_main(thing)), None)
    if main is None:
        return ("python" if is_pythons else "native" if python else "unknown"), shown
    kind = "garbage" if main.kind == "objects" and is_uncollected else main.kind
    return kind, [main, *(thing for thing in shown if thing is not main)]


def _names(functions: Iterable[Any]) -> str:
    names = Counter(str(getattr(getattr(each, "graph", None), "name", "")) for each in functions)
    return ", ".join(name for name, _ in names.most_common(3) if name)


def _most(places: Iterable[str]) -> str:
    counts = Counter(place for place in places if place)
    return counts.most_common(1)[0][0] if counts else ""


def _largest(places: Counter[str]) -> str:
    most = [(place, size) for place, size in places.most_common(2) if place and size > 0]
    return most[0][0] if most else ""


def _bytes_of(tensor: Any) -> float | None:
    try:
        return float(tensor.shape.num_elements() * tensor.dtype.size)
    except Exception:  # a resource, a variant, or of an unknown TensorFlow
        return None


def _place_of_op(ops: Iterable[Any]) -> str:
    """As TensorFlow itself remembers it."""
    for op in ops:
        for filename, line, *_ in reversed(list(getattr(op, "traceback", None) or [])):
            if not is_library(filename):
                return place_of([_Line(filename, line)])
    return ""


@dataclass
class _Line:
    filename: str
    lineno: int
