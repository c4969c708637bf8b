"""Keeps the tracer's own errors from the training: the first one is logged, and switches the tracer off for good."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

log = logging.getLogger("tftracer")


class OwnErrors(ABC):
    def __init__(self) -> None:
        self.failures: deque[str] = deque(maxlen=20)

    @abstractmethod
    def close(self) -> None:
        """Switch the tracer off."""

    def failed(self, where: str, error: BaseException) -> None:
        """Switch the tracer off after an error of its own, and log the first such error."""
        is_first = not self.failures
        self.close()
        self.failures.append(f"{where}: {type(error).__name__}: {error}")
        if is_first:
            log.error("tftracer failed and has switched itself off; training goes on", exc_info=error)

    def run_safely(self, where: str, action: Callable[..., Any], *arguments: Any) -> Any:
        """Return what ``action`` returns. If it raises, switch the tracer off and return None."""
        try:
            return action(*arguments)
        except Exception as error:
            self.failed(where, error)
            return None
