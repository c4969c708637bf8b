"""Reads a dataset's transformations, their functions and lines. Runs in the training process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

#: Beginning of a stage's name, in tf.data's model of the pipeline and in Python -> kind of the stage.
KINDS = {
    "Map": "map",
    "ParallelMap": "map",
    "Filter": "filter",
    "ParallelFilter": "filter",
    "FlatMap": "flat_map",
    "Interleave": "interleave",
    "ParallelInterleave": "interleave",
    "Shuffle": "shuffle",
}
#: The function by which Keras takes a batch from arrays, and its files in Keras 3 and 2.
KERAS_BATCHES = ("grab_batch", "array_data_adapter.py:", "data_adapter.py:")
#: The name of the transformation for a Python generator; TensorFlow's stages for it are a FlatMap and a Generator.
FROM_GENERATOR = "from_generator"
#: Kinds whose advice depends on the number of elements of their input: an interleave reads at most that many datasets at once,
#: and a shuffle whose buffer holds all elements gives out none while it fills.
COUNTED_INPUTS = ("interleave", "shuffle")
MAX_TRANSFORMATIONS = 200
MAX_OPS = 5000


@dataclass(frozen=True)
class Transformation:
    """A transformation of the script's dataset, such as ``map``."""

    name: str  # "ParallelMap", "TFRecord", FROM_GENERATOR
    function: str = ""  # the function that it calls
    place: str = ""  # "train.py:12"
    python: bool = False  # the function calls Python: py_function, numpy_function
    size: int | None = None  # size of a shuffle's buffer
    input_elements: int | None = None  # in one pass over its input; None: not known, or endless

    @property
    def kind(self) -> str:
        return kind_of(self.name)

    @property
    def call(self) -> str:
        """The call in the script, such as "map(decode)"."""
        return f"{self.kind or _method(self.name)}({self.function})"


def kind_of(name: str) -> str:
    """Return the kind of a stage; "" if it has none."""
    return next((kind for start, kind in KINDS.items() if name.startswith(start)), "")


def steps_of(dataset: Any) -> list[Transformation]:
    """Return the transformations, from the last one to the sources."""
    return [_step(each) for each in _walk(dataset)]


def is_distributed(steps: Sequence[Transformation]) -> bool:
    """Return whether a distribution strategy hands the elements over."""
    return any("PerDeviceGenerator" in step.name for step in steps)


def keras_makes_batches(steps: Sequence[Transformation]) -> bool:
    """Return whether Keras makes batches from arrays. Then no stage has "Batch" in its name."""
    return any(step.function == KERAS_BATCHES[0] and step.place.startswith(KERAS_BATCHES[1:]) for step in steps)


def title_of(steps: list[Transformation]) -> str:
    """Return a title such as "TFRecord → map(decode) → batch"."""
    names = [step.call if step.function else _method(step.name) for step in steps]
    return " → ".join(name for name in reversed(names) if name not in ("Options", "Model"))[:300]


def _method(name: str) -> str:
    known = {"Batch", "Prefetch", "Shuffle", "Repeat", "Cache", "Take", "Skip", "Shard", "Zip", "Concatenate"}
    return name.lower() if name in known else name


def _walk(dataset: Any) -> Iterator[Any]:
    waiting, seen = [dataset], 0
    while waiting and seen < MAX_TRANSFORMATIONS:
        each = waiting.pop(0)
        seen += 1
        yield each
        if _generator_of(each) is not None:
            continue  # its input only gives TensorFlow's id of the generator
        inputs = getattr(each, "_inputs", None)
        waiting += list(inputs()) if callable(inputs) else []


def _step(dataset: Any) -> Transformation:
    step = _step_from_code(dataset)
    return replace(step, input_elements=_input_elements(dataset)) if step.kind in COUNTED_INPUTS else step


def _input_elements(dataset: Any) -> int | None:
    inputs = dataset._inputs()
    known = inputs[0].cardinality() if len(inputs) == 1 and hasattr(inputs[0], "cardinality") else None
    number = _number(known)
    return number if number is not None and number >= 0 else None


def _step_from_code(dataset: Any) -> Transformation:
    name = type(dataset).__name__.strip("_").replace("DatasetV2", "").replace("DatasetV1Adapter", "").replace("Dataset", "")
    wrapper = getattr(dataset, "_map_func", None) or getattr(dataset, "_predicate", None)
    function = getattr(wrapper, "_func", None)
    generator = _generator_of(dataset)
    if generator is not None:
        return Transformation(FROM_GENERATOR, *_named(generator), python=True)
    code = getattr(function, "__code__", None)
    size = getattr(dataset, "_buffer_size", None) if name.startswith("Shuffle") else None
    if code is None or "/tensorflow/python/" in code.co_filename.replace("\\", "/"):
        function_name = "" if function is None or code is not None else type(function).__name__
        return Transformation(name, function_name, size=_number(size))
    return Transformation(name, *_named(function), _calls_python(wrapper))


def _named(function: Any) -> tuple[str, str]:
    """Return a function's name and place; the name of its class if it has no code."""
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if code is None:
        return type(function).__name__, ""
    return getattr(function, "__name__", ""), f"{code.co_filename.replace(chr(92), '/').rpartition('/')[2]}:{code.co_firstlineno}"


def _generator_of(dataset: Any) -> Any:
    """Return the generator function of ``Dataset.from_generator``; None for other datasets.

    TensorFlow keeps it in variables of the nested functions that it makes.
    """
    flat_map = getattr(getattr(dataset, "_map_func", None), "_func", None)
    id_function = _variables_of(flat_map).get("get_iterator_id_fn")
    return getattr(_variables_of(id_function).get("generator_state"), "_generator", None)


def _variables_of(function: Any) -> dict[str, Any]:
    """Return the variables of outer functions that a nested function uses."""
    names, cells = getattr(getattr(function, "__code__", None), "co_freevars", ()), getattr(function, "__closure__", None) or ()
    variables = {}
    for name, cell in zip(names, cells):
        with suppress(ValueError):  # the variable has no value yet
            variables[name] = cell.cell_contents
    return variables


def _number(size: Any) -> int | None:
    return int(size.numpy()) if hasattr(size, "numpy") else None


def _calls_python(wrapper: Any) -> bool:
    operations = wrapper.function.graph.get_operations()
    return any(op.type in ("EagerPyFunc", "PyFunc", "PyFuncStateless") for op in operations[:MAX_OPS])
