"""What a line of Python is called: its file and function, whose it is, and the hook or callback that it belongs to."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

from tftracer.slow.recorded import Frame

#: Lines that are remembered.
MAX_FRAMES = 8192
#: What TensorFlow calls on another object of the training: hooks by these methods, Keras callbacks by those that begin so.
HOOK_METHODS = frozenset(["begin", "after_create_session", "before_run", "after_run", "end"])
CALLBACK_METHODS = "on_"
#: The base classes, where their modules are imported: (module, class).
HOOKS = [("tensorflow.python.training.session_run_hook", "SessionRunHook")]
CALLBACKS = [
    ("keras.src.callbacks.callback", "Callback"),  # Keras 3
    ("keras.src.callbacks", "Callback"),  # Keras 2 since 2.13
    ("keras.callbacks", "Callback"),  # before
    ("tf_keras.src.callbacks", "Callback"),
]
#: Where TensorFlow keeps the Python functions of graphs and datasets: py_function, numpy_function, from_generator.
FUNCTIONS = ("tensorflow.python.ops.script_ops", "_py_funcs", "_unique_id")
#: These only call others.
NOBODY = frozenset(["CallbackList"])
#: Our wrappers of TensorFlow's methods stand in a file of this name, in a folder of TensorFlow's.
WRAPPERS = "tftracer-wrappers.py"
OURS = str(Path(__file__).parents[2]) + os.sep
#: In the paths of installed packages.
INSTALLED = ("/site-packages/", "/dist-packages/")
_PATHS = sysconfig.get_paths()
#: Folders of Python's own modules, and of all that the user has not written: these, installed packages, tftracer.
STANDARD = tuple({_PATHS[name] for name in ("stdlib", "platstdlib") if _PATHS.get(name)})
LIBRARIES = (*STANDARD, *{_PATHS[name] for name in ("purelib", "platlib") if _PATHS.get(name)}, OURS)


def may_call_python() -> bool:
    """Whether TensorFlow may call a Python function while it runs a step: False where this process has never given it one."""
    module, registry, given = FUNCTIONS
    return getattr(getattr(sys.modules.get(module), registry, None), given, None) != 0


class FrameNames:
    """Used by one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, str], Frame] = {}

    def frame(self, file: str, line: int, function: str) -> Frame:
        """``function``: its name, with its class where that is known ("CheckpointSaverHook.after_run")."""
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


#: In the names of files that AutoGraph writes for functions that it rewrites.
AUTOGRAPH = "__autograph_generated_file"


def is_library(file: str) -> bool:
    """Whether the user has not written it."""
    if file == "<string>":  # what a library compiled from a text; of ``python -c`` the script
        return hasattr(sys.modules.get("__main__"), "__file__")
    if file.startswith("<"):  # <frozen importlib>, <__array_function__ internals>; but what was typed or a notebook's cell
        return not file.startswith(("<stdin>", "<ipython", "<python-input"))
    if AUTOGRAPH in file:
        return True
    return file.startswith(LIBRARIES) or any(part in file for part in INSTALLED)


def is_standard_library(file: str) -> bool:
    """Whether it is Python's own."""
    if file.startswith("<"):
        return is_library(file)
    return file.startswith(STANDARD) and not any(part in file for part in INSTALLED)


def is_tracers(file: str) -> bool:
    return file.startswith(OURS)


def owner_of(file: str, line: int, name: str) -> str:
    """The class of another hook or of a Keras callback that defines the method at a line; "" for other code."""
    bases = HOOKS if name in HOOK_METHODS else CALLBACKS if name.startswith(CALLBACK_METHODS) else []
    for module, base in bases:
        root = getattr(sys.modules.get(module), base, None)
        for owner in _subclasses(root) if isinstance(root, type) else ():
            if _has_line(_code_of(vars(owner).get(name)), file, line):
                is_ours = owner.__module__.partition(".")[0] == "tftracer"
                return "" if is_ours or owner.__name__ in NOBODY else owner.__name__
    return ""


def _has_line(code: CodeType | None, file: str, line: int) -> bool:
    if code is None or code.co_filename != file:
        return False
    return line in {number for _, number in dis.findlinestarts(code)}


def is_callback(frame: Frame) -> bool:
    """Whether the owner of a frame is a Keras callback; else it is a hook."""
    return frame.function.startswith(CALLBACK_METHODS)


def _subclasses(root: type) -> Iterator[type]:
    """All classes below ``root``, each once."""
    seen: set[type] = set()
    left: list[type] = list(type.__subclasses__(root))
    while left:
        owner = left.pop()
        if owner not in seen:
            seen.add(owner)
            left.extend(type.__subclasses__(owner))
            yield owner


def _code_of(method: Any) -> CodeType | None:
    """The code of a function, also of one in decorators that name what they wrap."""
    for _ in range(8):
        wrapped = getattr(method, "__wrapped__", None)
        if wrapped is None:
            break
        method = wrapped
    code = getattr(method, "__code__", None)
    return code if isinstance(code, CodeType) else None
