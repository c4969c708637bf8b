"""Describes the memory for ``tftracer FILE --summary``."""

from __future__ import annotations

import textwrap

from tftracer.contract.memory_growth import ProcessMemory
from tftracer.trace.summary import WIDTH

#: Maximum number of growths in the text, the newest first.
MAX_GROWTHS = 3


def render(memory: ProcessMemory) -> str:
    """Return the text of the proven growths, followed by the reason if the memory is not known; "" if there is neither."""
    texts = [" ".join(filter(None, [each["text"], each["advice"], *each["doubts"]])) for each in memory["growths"][:MAX_GROWTHS]]
    return "\n".join(line for text in [*texts, memory["text"]] for line in textwrap.wrap(text, WIDTH))
