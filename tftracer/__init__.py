"""tftracer: watch a TensorFlow training live, and trace the next step op by op.

Importing this package imports neither TensorFlow nor the server: each name except the errors is loaded at its first use. It also
imports no module of Python's standard library, because the command handles Ctrl-C only after this import.
"""

from __future__ import annotations

from tftracer.errors import (
    FormatError,
    HelperError,
    MissingTensorFlowError,
    PatternError,
    PortError,
    StorageError,
    TracerError,
    TruncatedError,
    UnknownError,
    UnsafePickleError,
    UnsupportedError,
    UsageError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tftracer.export.tables.table import Table
    from tftracer.record_all_sessions import hook_inject
    from tftracer.scripting.open_path import open
    from tftracer.scripting.session import Session
    from tftracer.server import TracingServer
    from tftracer.timeline import Timeline
    from tftracer.version import __version__

__all__ = [
    "FormatError",
    "HelperError",
    "MissingTensorFlowError",
    "PatternError",
    "PortError",
    "Session",
    "StorageError",
    "Table",
    "Timeline",
    "TracerError",
    "TracingServer",
    "TruncatedError",
    "UnknownError",
    "UnsafePickleError",
    "UnsupportedError",
    "UsageError",
    "__version__",
    "hook_inject",
    "open",
]


_MODULES = {
    "TracingServer": "tftracer.server",
    "Timeline": "tftracer.timeline",
    "hook_inject": "tftracer.record_all_sessions",
    "open": "tftracer.scripting.open_path",
    "Session": "tftracer.scripting.session",
    "Table": "tftracer.export.tables.table",
    "__version__": "tftracer.version",
    "load_ipython_extension": "tftracer.notebook.magic",  # %load_ext tftracer
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
