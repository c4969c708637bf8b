"""Says why a script has no steps, judging by the modules that it has imported, and what to do. Needs no TensorFlow."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

EAGER = (
    "No session.run, no call of a compiled function (tf.function, Keras) and no step of an optimizer was seen. Other "
    "eager code has nothing that marks a step: compile it with @tf.function, or say what a step is with TracingServer().step()."
)
JAX = (
    "The script has imported JAX. What JAX computes is not seen here: record a profile of it, jax.profiler.start_trace(FOLDER) "
    "and jax.profiler.stop_trace(), and open it with tftracer FOLDER."
)
SERVER = "A parameter server runs no steps of its own. The workers do: trace them."


def no_steps(modules: Mapping[str, Any], role: str, sees_all_sessions: bool) -> str:
    """Return why there are no steps; "" if perhaps only the hook is missing.

    ``modules``: the process's imported modules. ``role``: its role in the job. ``sees_all_sessions``: no hook is needed.
    """
    backend = keras_backend(modules)
    if backend not in ("", "tensorflow"):
        remedy = f" {JAX}" if backend == "jax" else ""
        return (
            f"Keras computes with {backend} in this script, and only TensorFlow's steps are seen here. Set the environment "
            f"variable KERAS_BACKEND=tensorflow to trace the same model with TensorFlow.{remedy}"
        )
    if role == "ps":
        return SERVER
    if "jax" in modules and not backend:
        return JAX
    return EAGER if sees_all_sessions else ""


def keras_backend(modules: Mapping[str, Any]) -> str:
    """Return the library that Keras 3 computes with; "" if Keras is not imported, or is older than 3."""
    config = getattr(modules.get("keras"), "config", None)
    with contextlib.suppress(Exception):  # a module that is half imported, or not Keras
        return str(config.backend()) if config is not None else ""
    return ""
