"""Describes the memory for ``tftracer FILE --summary``."""

from __future__ import annotations

import textwrap

from tftracer.contract.memory_growth import ProcessMemory
from tftracer.trace.summary import WIDTH

#: Growths that are listed, the newest first.
MAX_GROWTHS = 3


def render(memory: ProcessMemory) -> str:
    """Return the text of the proven growths; "" without any."""
    texts = [" ".join(filter(None, [each["text"], each["advice"], *each["doubts"]])) for each in memory["growths"][:MAX_GROWTHS]]
    return "\n".join(line for text in [*texts, memory["text"]] for line in textwrap.wrap(text, WIDTH))
