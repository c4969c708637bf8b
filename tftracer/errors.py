"""The errors that tftracer raises on purpose. Each message says what is wrong, and what to do.

All are also in ``tftracer``: ``tftracer.StorageError``. Each is also a subclass of one of Python's errors: ``except OSError``
catches a StorageError, for example. So code of this package that catches Python's errors must re-raise a TracerError first.
"""

from __future__ import annotations


class TracerError(Exception):
    """The base class: ``except tftracer.TracerError`` catches every error that the package raises on purpose."""


class FormatError(TracerError, ValueError):
    """A file or a message is invalid: of another format, cut short, too large or hostile."""


class UsageError(TracerError, ValueError):
    """An argument of a command is invalid, for example a misspelt rule of ``tftracer compare``."""


class PatternError(FormatError):
    """A pattern is not a regular expression, or takes too long to match."""


class UnsafePickleError(FormatError):
    """A pickle names a class that no session or RunMetadata pickle needs. Nothing in it was executed."""


class TruncatedError(FormatError):
    """A file or a message ends too early; the part before the cut was read."""


class StorageError(TracerError, OSError):
    """A file could not be written or read, for example for lack of rights or space."""


class PortError(TracerError, OSError):
    """No port could be bound."""


class UnknownError(TracerError, KeyError):
    """There is no run, trace, node, table or column with this number or name."""

    __str__ = Exception.__str__  # KeyError puts the message in quotes


class MissingTensorFlowError(TracerError, ImportError):
    """The call needs TensorFlow, which is not installed here."""


class UnsupportedError(TracerError, RuntimeError):
    """The call is not possible here, for example tracing a session that was reopened from a file."""


class HelperError(TracerError, RuntimeError):
    """The process that analyzes traces has died, hangs or ran out of memory. The trace is intact; training is not affected."""
