"""Every error that tftracer raises on purpose. Each message says what was wrong, with what, and what to do.

All are in ``tftracer`` itself, too: ``tftracer.StorageError``. Each is one of Python's own errors as well, so that
``except OSError`` catches a file that cannot be read. Code of the package that catches Python's errors lets its own pass first.
"""

from __future__ import annotations


class TracerError(Exception):
    """The root: ``except tftracer.TracerError`` catches whatever the package raises on purpose."""


class FormatError(TracerError, ValueError):
    """A file or a message is not what it should be: of another format, cut short, too large or hostile."""


class UsageError(TracerError, ValueError):
    """An argument of a command cannot be followed: a rule of ``tftracer compare`` that is misspelt, for one."""


class PatternError(FormatError):
    """A pattern is no regular expression, or one that takes too long to match."""


class UnsafePickleError(FormatError):
    """A pickle names a class that no session or run-metadata pickle has a reason to name. Nothing in it was executed."""


class TruncatedError(FormatError):
    """A file or a message ends before it should; what came before the cut was read."""


class StorageError(TracerError, OSError):
    """A file could not be written or read: no rights, no space, in use."""


class PortError(TracerError, OSError):
    """No port could be bound."""


class UnknownError(TracerError, KeyError):
    """There is no run, trace, node, table or column with this number or name."""

    __str__ = Exception.__str__  # KeyError puts the message in quotes


class MissingTensorFlowError(TracerError, ImportError):
    """The call needs TensorFlow, which is not installed here."""


class UnsupportedError(TracerError, RuntimeError):
    """The call makes no sense here: tracing a session that was reopened from a file, for one."""


class HelperError(TracerError, RuntimeError):
    """The process that analyzes traces died, hangs or ran out of memory. The trace is intact, and training is not affected."""
