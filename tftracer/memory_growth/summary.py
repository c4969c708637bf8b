"""The memory for ``tftracer FILE --summary``."""

from __future__ import annotations

import textwrap

from tftracer.contract.memory_growth import ProcessMemory
from tftracer.trace.summary import WIDTH

#: How many growths are listed, the newest first.
LISTED = 3


def render(memory: ProcessMemory) -> str:
    """ "" where no growth is proven."""
    texts = [" ".join(filter(None, [each["text"], each["advice"], *each["doubts"]])) for each in memory["growths"][:LISTED]]
    return "\n".join(line for text in [*texts, memory["text"]] for line in textwrap.wrap(text, WIDTH))
