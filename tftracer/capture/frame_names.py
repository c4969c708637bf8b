"""What a line of Python is called: its file and function, whose it is, and the hook or callback that it belongs to."""

from __future__ import annotations

import functools
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from tftracer.slow.recorded import Frame

#: Code objects whose names are remembered.
MAX_CODES = 4096
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
#: These only call others.
NOBODY = frozenset(["CallbackList"])
OURS = str(Path(__file__).parents[1])


@functools.lru_cache(maxsize=1)
def library_folders() -> tuple[str, ...]:
    """Folders of what the user has not written: Python's own modules, installed packages, tftracer."""
    paths = sysconfig.get_paths()
    folders = {paths.get(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")} | {OURS}
    return tuple(sorted(path for path in folders if path))


class FrameNames:
    """Used by one thread at a time."""

    def __init__(self) -> None:
        self._of_code: dict[CodeType, tuple[str, bool]] = {}  # -> owner, is_library

    def frame(self, code: CodeType, line: int) -> Frame:
        described = self._of_code.get(code)
        if described is None:
            if len(self._of_code) >= MAX_CODES:
                self._of_code.clear()
            described = self._of_code[code] = (owner_of(code), is_library(code.co_filename))
        return Frame(code.co_filename, line, code.co_name, *described)


def is_library(file: str) -> bool:
    """Whether the user has not written it."""
    if file.startswith("<"):  # <frozen importlib>, <__array_function__ internals>; but what was typed or a notebook's cell
        return not file.startswith(("<stdin>", "<string>", "<ipython", "<python-input"))
    return file.startswith(library_folders()) or "/site-packages/" in file or "/dist-packages/" in file


def owner_of(code: CodeType) -> str:
    """The class of another hook or of a Keras callback that defines this method; "" for other code."""
    name = code.co_name
    bases = HOOKS if name in HOOK_METHODS else CALLBACKS if name.startswith(CALLBACK_METHODS) else []
    for module, base in bases:
        root = getattr(sys.modules.get(module), base, None)
        for owner in _subclasses(root) if isinstance(root, type) else ():
            if _code_of(vars(owner).get(name)) is code:
                is_ours = owner.__module__.partition(".")[0] == "tftracer"
                return "" if is_ours or owner.__name__ in NOBODY else owner.__name__
    return ""


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
