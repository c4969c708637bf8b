"""Calls a function when a forked child uses TensorFlow for the first time, and not earlier: most children never use it."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

from tftracer.capture.functions.function_definitions import concrete_function_module, function_module
from tftracer.capture.session_wrappers import session_class

log = logging.getLogger("tftracer")


def at_first_use(then: Callable[[], None]) -> None:
    """Call ``then`` once, before the first call of a compiled function or of a session.

    Raises AttributeError or ImportError if this TensorFlow lacks one of these classes.
    """
    methods = [(function_module().Function, "__call__"), (concrete_function_module().ConcreteFunction, "_call_flat")]
    methods += [(session_class(), "run"), (session_class(), "make_callable")]
    originals = [(owner, name, vars(owner)[name]) for owner, name in methods if name in vars(owner)]

    def on_use() -> None:
        for owner, name, original in originals:
            setattr(owner, name, original)
        originals.clear()
        try:
            then()
        except Exception as error:
            log.warning("tftracer: this process is not traced: %s", error)

    for owner, name, original in list(originals):
        setattr(owner, name, _wrap_first_call(owner, name, original, on_use))


def _wrap_first_call(owner: type, name: str, original: Callable[..., Any], on_use: Callable[[], None]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        on_use()
        return getattr(owner, name)(*args, **kwargs)

    return call
