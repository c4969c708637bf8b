"""Calls a function as soon as the script has imported a module, such as TensorFlow. The tracer does not import it itself."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

log = logging.getLogger("tftracer")


def after_import(name: str, then: Callable[[], None]) -> Callable[[], None]:
    """Call ``then`` once the module is imported, or now if it was imported before. Return a function that cancels the call."""
    if name in sys.modules:
        then()
        return lambda: None
    # All callbacks of a module share one finder: a finder asks the other finders, so n of them would search 2 ** n times.
    finder = next((other for other in sys.meta_path if isinstance(other, _AfterImport) and other.name == name), None)
    if finder is None:
        finder = _AfterImport(name)
        sys.meta_path.insert(0, finder)
    finder.callbacks.append(then)
    return partial(finder.cancel, then)


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls its callbacks once, when a module has been imported by any loader."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.callbacks: list[Callable[[], None]] = []
        self._is_searching = False

    def cancel(self, callback: Callable[[], None]) -> None:
        with contextlib.suppress(ValueError):
            self.callbacks.remove(callback)
        if not self.callbacks:
            self._remove()

    def _remove(self) -> None:
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != self.name or self._is_searching:
            return None
        self._is_searching = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._is_searching = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._run_callbacks)
        return spec

    def _run_callbacks(self) -> None:
        self._remove()
        for callback in self.callbacks:
            try:
                callback()
            except Exception as error:
                log.warning("tftracer: this process is not traced: %s", error)


class _Loader(importlib.abc.Loader):
    """Wraps another loader and calls ``on_loaded`` after that loader has executed the module."""

    def __init__(self, loader: Any, on_loaded: Callable[[], None]) -> None:
        self._loader = loader
        self._on_loaded = on_loaded

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._on_loaded()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)
