"""Where TensorFlow keeps what its compiled functions are made of: it moved between versions."""

from __future__ import annotations

import importlib
from typing import Any

_PACKAGE = "tensorflow.python.eager.polymorphic_function"


def functions() -> Any:
    """The module of ``Function``, what ``tf.function`` makes."""
    return importlib.import_module(f"{_PACKAGE}.polymorphic_function")


def concrete_functions() -> Any:
    """The module of ``ConcreteFunction``. Raises ImportError on a TensorFlow that has it elsewhere."""
    try:
        return importlib.import_module(f"{_PACKAGE}.concrete_function")
    except ImportError:
        return importlib.import_module(f"{_PACKAGE}.monomorphic_function")  # TensorFlow 2.12


def is_concrete(key: Any) -> bool:
    """Whether this is a ``ConcreteFunction``. TensorFlow is not imported to find out."""
    return type(key).__module__.startswith("tensorflow.") and isinstance(key, concrete_functions().ConcreteFunction)
