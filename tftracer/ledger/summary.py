"""Describes the ledger for ``tftracer FILE --summary``."""

from __future__ import annotations

import textwrap

from tftracer.contract.ledger import Ledger, LedgerPart
from tftracer.ledger.parts_of_wall_time import long_duration
from tftracer.trace.summary import WIDTH, shortened, table

#: Maximum number of listed items of each part.
MAX_ITEMS = 3


def render(ledger: Ledger) -> str:
    """Return the text of the ledger; "" if it is not known."""
    if not ledger["parts"]:
        return ""
    rows = [["Wall time", long_duration(ledger["duration_s"]), "100.0%"]]
    rows += [[part["name"], long_duration(part["duration_s"]), f"{part['permille'] / 10:.1f}%"] for part in ledger["parts"]]
    head, *lines = table(rows).splitlines()
    lines = [shortened(f"{line}  {_items(part)}".rstrip(), WIDTH) for line, part in zip(lines, ledger["parts"])]
    text = " ".join(filter(None, [ledger["text"], ledger["advice"], *ledger["doubts"]]))
    return "\n".join([head, *lines, *textwrap.wrap(text, WIDTH)])


def _items(part: LedgerPart) -> str:
    about = "about " if part["kind"] == "python" else ""
    return ", ".join(f"{item['name']} {about}{long_duration(item['duration_s'])}" for item in part["items"][:MAX_ITEMS])
