"""How the page shows a compiled function: by a readable name, its arguments, and where it is defined.

Reads attributes of TensorFlow's objects and never raises: an attribute that is missing or not as expected is left out.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tftracer.capture.functions.retracing import leaves, tensor_text
from tftracer.slow.cause.frame_names import is_library

#: Keras 2's methods that make step functions -> the loop that calls these functions.
_LOOP_OF_MAKER = {"make_train_function": "fit", "make_test_function": "evaluate", "make_predict_function": "predict"}
#: Methods of a model that Keras 3 calls in its step functions -> the loop that calls these functions.
_LOOP_OF_STEP = {"train_step": "fit", "test_step": "evaluate", "predict_step": "predict"}
#: TensorFlow's name for the functions of a SavedModel, and the prefix of its signatures' names.
RESTORED, SIGNATURE = "restored_function_body", "signature_wrapper_"
#: Names that TensorFlow generates. The number at the end differs between graphs.
_GENERATED = re.compile(r"__(?P<way>inference|forward|backward)_(?P<name>.+)_\d+")
MAX_SHOWN = 4
MAX_DEPTH = 10


class FunctionIdentity(NamedTuple):
    title: str  # "fit: convnet", "train_step (32,28,28,1)"
    definition: str  # "train.py:12"
    arguments: tuple[str, ...]  # "x: float32[32,28,28,1]"
    origin: str  # for the page: the definition, or what made the function, such as "Keras, 8 batches a step"
    variables: str = ""  # digest of the variables' types and shapes, because different models may have the same name


class StepName:
    """The common name of steps that are not calls of one function: of ``server.step("train")``, of an eager loop, or of a Keras
    model that runs eagerly. All steps with one StepName belong to one run."""

    origin = "server.step"  # as the page shows it

    def __init__(self, name: str) -> None:
        self.__name__ = name


def identify(function: Any, concrete: Any) -> FunctionIdentity:
    """Identify a function. ``function``: a tf.function, a StepName or None. ``concrete``: the ConcreteFunction that ran, or
    None."""
    python_function = _python_function(function)
    arguments = tuple(_arguments(concrete))
    loop, model = keras_loop_and_model(python_function)
    name = keras_title(loop, model) if loop else _name(function, concrete)
    shapes = [text.partition("[")[2].rstrip("]") for text in arguments if "[" in text and not text.endswith("[]")]
    shown = " ".join(f"({shape})" for shape in shapes[:MAX_SHOWN]) + (" ..." if len(shapes) > MAX_SHOWN else "")
    title = name if ":" in name or not shown else f"{name} {shown}"
    definition = _definition(python_function)
    origin = _keras_origin(loop, model) if loop else definition or _origin(function)
    return FunctionIdentity(title, definition, arguments, origin, _variables_digest(concrete))


def _python_function(function: Any) -> Any:
    with contextlib.suppress(Exception):
        return function.python_function
    return None


def _name(function: Any, concrete: Any) -> str:
    for holder, attribute in ((function, "__name__"), (function, "_name"), (concrete, "name")):
        name = _text(holder, attribute)
        if name == RESTORED:
            return next((known for each in saved_model_functions(function) if (known := plain_name(_text(each, "name")))), name)
        if name == "__call__":
            return _method(function) or name
        if name:
            return plain_name(name)
    return "function"


def plain_name(name: str) -> str:
    """Return "step" for TensorFlow's "__inference_step_67", "gradient of step" for "__inference___backward_step_67_80"."""
    is_gradient = False
    while match := _GENERATED.fullmatch(name):
        name, is_gradient = match["name"], is_gradient or match["way"] == "backward"
    name = name.removeprefix(SIGNATURE)
    return f"gradient of {name}" if is_gradient else name


def saved_model_functions(function: Any) -> list[Any]:
    """Return the ConcreteFunctions of a SavedModel's function, whose names contain its real name; [] for other functions."""
    with contextlib.suppress(Exception):
        return list(function.concrete_functions)
    return []


def _text(holder: Any, attribute: str) -> str:
    with contextlib.suppress(Exception):
        name = getattr(holder, attribute)
        return name.decode() if isinstance(name, bytes) else str(name or "")
    return ""


def _method(function: Any) -> str:
    """Return "Model.__call__" for a method named ``__call__``, because the method's name does not tell the class; "" if
    unknown."""
    with contextlib.suppress(Exception):
        return ".".join(str(inspect.unwrap(_python_function(function)).__qualname__).rpartition("<locals>.")[2].split(".")[-2:])
    return ""


def _variables_digest(concrete: Any) -> str:
    with contextlib.suppress(Exception):
        shapes = sorted(f"{variable.dtype.name}{variable.shape}" for variable in concrete.variables)
        return hashlib.sha256(" ".join(shapes).encode()).hexdigest()[:16]
    return ""


def keras_title(loop: str, model: Any) -> str:
    """Return "fit: convnet", or "fit" if the model is not known."""
    return f"{loop}: {getattr(model, 'name', None) or type(model).__name__}" if model is not None else loop


def _keras_origin(loop: str, model: Any) -> str:
    """Return "Keras", with the number of batches in a step if there are several."""
    with contextlib.suppress(Exception):
        batches = int(model._compile_config.config["steps_per_execution"] or 1)
        if batches > 1 and loop in ("fit", "evaluate", "predict"):
            return f"Keras, {batches} batches a step"
    return "Keras"


def _origin(function: Any) -> str:
    with contextlib.suppress(Exception):
        return str(function.origin)  # StepName and CompiledKerasStepName have it
    return "SavedModel" if _text(function, "__name__") == RESTORED else "tf.function"


def keras_loop_and_model(python_function: Any) -> tuple[str, Any]:
    """Return (loop, model) of a function that runs steps of a Keras model, such as ("fit", model); ("", None) for others."""
    loop, model = "", None
    for holder in _inner_functions(python_function, 0):
        qualified, name = str(getattr(holder, "__qualname__", "")), str(getattr(holder, "__name__", ""))
        owner = getattr(holder, "__self__", None)
        if hasattr(owner, "fit") and name in _LOOP_OF_STEP:
            loop, model = _LOOP_OF_STEP[name], owner
        loop = loop or next((known for maker, known in _LOOP_OF_MAKER.items() if f"{maker}.<locals>" in qualified), "")
        if hasattr(holder, "fit") and hasattr(holder, "name"):
            model = model if model is not None else holder
    return loop, model


def _inner_functions(python_function: Any, depth: int) -> Iterator[Any]:
    """Yield a function, the function that it wraps, and the callables in its closure, recursively."""
    python_function = _python_function(python_function) or python_function
    yield python_function
    if depth >= MAX_DEPTH:
        return
    if hasattr(python_function, "__wrapped__"):
        yield from _inner_functions(python_function.__wrapped__, depth + 1)
    for cell in getattr(python_function, "__closure__", None) or ():
        with contextlib.suppress(ValueError):  # an empty cell
            content = cell.cell_contents
            if callable(content):
                yield from _inner_functions(content, depth + 1)


def _definition(python_function: Any) -> str:
    """Return "train.py:12"; "" for code of an installed package, such as Keras, and if unknown."""
    with contextlib.suppress(ValueError):  # raised for a function that wraps itself
        python_function = inspect.unwrap(python_function)
    code = getattr(python_function, "__code__", None)
    if code is None:
        return ""
    if is_library(code.co_filename):
        return ""
    path = Path(code.co_filename)
    with contextlib.suppress(ValueError, OSError):  # not below the current folder
        path = path.relative_to(Path.cwd())
    return f"{path}:{code.co_firstlineno}"


def _arguments(concrete: Any) -> Iterator[str]:
    """Yield the name, type and shape of each tensor argument, such as "x: float32[32,28,28,1]". Captured tensors are left out."""
    with contextlib.suppress(Exception):
        positional, named = concrete.structured_input_signature
        for _, name, spec in [*leaves("", positional), *leaves("", named)]:
            if text := tensor_text(spec):
                label = getattr(spec, "name", None) or name
                yield f"{label}: {text}" if label else text
