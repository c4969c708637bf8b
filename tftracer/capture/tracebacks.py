"""Hides the tracer's wrappers of TensorFlow's methods in the tracebacks and texts of errors that pass through them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tftracer.slow.cause.frame_names import WRAPPERS

Wrapper = TypeVar("Wrapper", bound=Callable[..., Any])


def hide_in_tracebacks(wrapper: Wrapper) -> Wrapper:
    """Give a wrapper a file name in TensorFlow's folder, so that TensorFlow treats it as one of its own functions.

    TensorFlow and Keras leave their own files out of tracebacks, and do not name their own lines in the text of an error.
    """
    folder = Path(getattr(sys.modules.get("tensorflow"), "__file__", None) or "tensorflow").parent
    code: Any = getattr(wrapper, "__code__")  # noqa: B009 (mypy does not know of it)
    wrapper.__code__ = code.replace(co_filename=str(folder / "python" / WRAPPERS))
    return wrapper


def remove_our_frames(error: BaseException) -> None:
    """Remove the wrappers' frames from the beginning of an error's traceback. Wrappers call it before their ``raise``.

    Up to Python 3.10, the ``raise`` adds the wrapper's frame again.
    """
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename.endswith(WRAPPERS):
        traceback = traceback.tb_next
    error.__traceback__ = traceback
