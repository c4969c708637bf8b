"""Checks of the arguments that scripts pass to TracingServer and Timeline."""

from __future__ import annotations

import functools
import operator
import os
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, Union, cast

from tftracer.errors import PatternError
from tftracer.trace.arrays.linear_regex import Pattern

#: By default a step is slow if it takes more than this many times the median, and more than 20 ms longer than the median.
SLOW_FACTOR = 3.0

F = TypeVar("F", bound=Callable[..., Any])
Path = Union[str, "os.PathLike[str]"]


def number(name: str, value: Any, minimum: int, maximum: int) -> int:
    """Return an integer (Python's or NumPy's) as an int. Raises TypeError for another type, ValueError if it is out of range."""
    try:
        if isinstance(value, bool):
            raise TypeError
        whole = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}") from None
    if not minimum <= whole <= maximum:
        raise ValueError(f"{name} must be from {minimum} to {maximum}, not {whole}")
    return whole


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")
    return value


def pattern(name: str, value: Any) -> str:
    """Check a regular expression. Raises TypeError if it is no string, ValueError if it is invalid or uses unsupported syntax."""
    try:
        Pattern(text(name, value))
    except PatternError as problem:
        raise ValueError(f"{name} must be a regular expression that tftracer can use: {problem}") from problem
    return str(value)


def slow_factor(name: str, value: Any) -> float | None:
    """Return SLOW_FACTOR for True, None for False, or the given number. Raises ValueError if it is not from 1.5 to 1000."""
    if value is True or value is False:
        return SLOW_FACTOR if value else None
    try:
        factor = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be True, False or a number, not {type(value).__name__}") from None
    if not 1.5 <= factor <= 1000:
        raise ValueError(f"{name} must be True, False or from 1.5 to 1000, not {value}")
    return factor


def path(name: str, value: Path | None) -> str | None:
    try:
        return None if value is None else os.fspath(value)
    except TypeError:
        raise TypeError(f"{name} must be a path, not {type(value).__name__}") from None


def also_named(**names: str) -> Callable[[F], F]:
    """Let a function accept old names of its keyword arguments: ``also_named(old_name="new_name")``."""

    def accept(function: F) -> F:
        @functools.wraps(function)
        def accepting(*args: Any, **kwargs: Any) -> Any:
            for old in kwargs.keys() & names.keys():
                if names[old] in kwargs:
                    raise TypeError(f"{function.__name__}() got both {names[old]!r} and its old name {old!r}")
                kwargs[names[old]] = kwargs.pop(old)
            return function(*args, **kwargs)

        return cast(F, accepting)

    return accept


def ignore(owner: str, unknown: dict[str, Any]) -> None:
    """Warn about unknown keyword arguments of ``owner``.

    tensorflow-tracer accepted any argument, so old scripts may pass unknown ones.
    """
    if unknown:
        names = ", ".join(sorted(unknown))
        warnings.warn(f"{owner} ignores arguments that it does not know: {names}", stacklevel=3)
