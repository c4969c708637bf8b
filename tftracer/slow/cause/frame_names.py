"""Describes a line of Python: file, function, whether it is the user's code, and the hook or callback that it belongs to."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from tftracer.slow.watch_results import Frame

#: Maximum number of cached frames.
MAX_FRAMES = 8192
#: Names of the hook methods that TensorFlow calls, and the first letters of the names of Keras's callback methods.
HOOK_METHODS = frozenset(["begin", "after_create_session", "before_run", "after_run", "end"])
CALLBACK_METHODS = "on_"
#: The base classes of hooks: (module, class). Modules are not imported for this.
HOOKS = [("tensorflow.python.training.session_run_hook", "SessionRunHook")]
CALLBACKS = [
    ("keras.src.callbacks.callback", "Callback"),  # Keras 3
    ("keras.src.callbacks", "Callback"),  # Keras 2 since 2.13
    ("keras.callbacks", "Callback"),  # Keras before 2.13
    ("tf_keras.src.callbacks", "Callback"),
]
#: Where TensorFlow keeps the Python functions of py_function, numpy_function and from_generator: module, registry, its counter.
FUNCTIONS = ("tensorflow.python.ops.script_ops", "_py_funcs", "_unique_id")
#: Callbacks that only call other callbacks.
CONTAINERS = frozenset(["CallbackList"])
#: The tracer's wrappers of TensorFlow's methods have this file name in their code, in TensorFlow's folder. There is no such file.
WRAPPERS = "tftracer-wrappers.py"
#: tftracer's folder.
OURS = str(Path(__file__).parents[2]) + os.sep
#: Folders in the paths of installed packages.
INSTALLED = ("/site-packages/", "/dist-packages/")
_PATHS = sysconfig.get_paths()
#: Folders of Python's own modules.
STANDARD = tuple({_PATHS[name] for name in ("stdlib", "platstdlib") if _PATHS.get(name)})
#: Folders of all code that is not the user's: Python's own modules, installed packages and tftracer.
LIBRARIES = (*STANDARD, *{_PATHS[name] for name in ("purelib", "platlib") if _PATHS.get(name)}, OURS)


def may_call_python() -> bool:
    """Return whether TensorFlow may call a Python function during a step: False if none was ever registered in this process."""
    module, registry, last_id = FUNCTIONS
    return getattr(getattr(sys.modules.get(module), registry, None), last_id, None) != 0


class FrameNames:
    """Makes frames and caches them. Only one thread at a time may use it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, str], Frame] = {}

    def frame(self, file: str, line: int, function: str) -> Frame:
        """Return the frame of a line. ``function``: its name, with its class if known ("CheckpointSaverHook.after_run")."""
        key = file, line, function
        frame = self._known.get(key)
        if frame is None:
            if len(self._known) >= MAX_FRAMES:
                self._known.clear()
            name = function.rpartition(".")[2]
            frame = self._known[key] = Frame(file, line, name, owner_of(file, line, name), is_library(file))
        return frame

    def stack(self, frames: Iterable[Sequence[Any]]) -> tuple[Frame, ...]:
        return tuple(self.frame(str(file), int(line), str(function)) for file, line, function in frames)


#: A part of the names of the files that AutoGraph writes for functions that it converts.
AUTOGRAPH = "__autograph_generated_file"


def is_library(file: str) -> bool:
    """Return whether a file is not the user's own code."""
    if file == "<string>":  # code that a library compiled from a text, or the script of ``python -c``
        return hasattr(sys.modules.get("__main__"), "__file__")
    if file.startswith("<"):  # such as <frozen importlib>, but not code that was typed, or a notebook's cell
        return not file.startswith(("<stdin>", "<ipython", "<python-input"))
    if AUTOGRAPH in file:
        return True
    return file.startswith(LIBRARIES) or any(part in file for part in INSTALLED)


def is_standard_library(file: str) -> bool:
    """Return whether a file belongs to Python itself."""
    if file.startswith("<"):
        return is_library(file)
    return file.startswith(STANDARD) and not any(part in file for part in INSTALLED)


def is_tracers(file: str) -> bool:
    return file.startswith(OURS)


def owner_of(file: str, line: int, name: str) -> str:
    """Return the class of the hook or Keras callback that defines the method at a line; "" for other code and for the
    tracer's."""
    bases = HOOKS if name in HOOK_METHODS else CALLBACKS if name.startswith(CALLBACK_METHODS) else []
    for module, base in bases:
        root = getattr(sys.modules.get(module), base, None)
        for owner in _subclasses(root) if isinstance(root, type) else ():
            if _has_line(code_of(vars(owner).get(name)), file, line):
                is_ours = owner.__module__.partition(".")[0] == "tftracer"
                return "" if is_ours or owner.__name__ in CONTAINERS else owner.__name__
    return ""


def _has_line(code: CodeType | None, file: str, line: int) -> bool:
    if code is None or code.co_filename != file:
        return False
    return line in {number for _, number in dis.findlinestarts(code)}


def is_callback(frame: Frame) -> bool:
    """Return whether the owner of a frame is a Keras callback (True) or a hook (False)."""
    return frame.function.startswith(CALLBACK_METHODS)


def _subclasses(root: type) -> Iterator[type]:
    """Yield all direct and indirect subclasses of ``root``, each once."""
    seen: set[type] = set()
    remaining: list[type] = list(type.__subclasses__(root))
    while remaining:
        owner = remaining.pop()
        if owner not in seen:
            seen.add(owner)
            remaining.extend(type.__subclasses__(owner))
            yield owner


def code_of(method: Any) -> CodeType | None:
    """Return the code of a function; if it is decorated with functools.wraps, of the original function. None if there is none."""
    for _ in range(8):
        wrapped = getattr(method, "__wrapped__", None)
        if wrapped is None:
            break
        method = wrapped
    code = getattr(method, "__code__", None)
    return code if isinstance(code, CodeType) else None
