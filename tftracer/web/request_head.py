"""Reads values from the raw head of a request without parsing it, for flood_limit.py, which does this for every connection.

Anyone who can reach the port may send heads of up to 64 kB of any bytes, and the GIL is held meanwhile. So regular expressions
are not used: bytes are searched and compared, each a fixed number of times.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote_plus

#: A longer token in a URL is ignored: decoding percent signs takes far longer than finding bytes.
MAX_TOKEN_BYTES = 4096


def has_end(head: bytes, start: int = 0) -> bool:
    """Return whether a blank line ends the head, at or after ``start``."""
    return head.find(b"\n\r\n", start) >= 0 or head.find(b"\n\n", start) >= 0


def fields(head: bytes, name: bytes) -> Iterator[str]:
    """Yield the values of the header lines with this name, which is in lower case."""
    lower = head.lower()
    end = min((at for at in (lower.find(b"\n\r\n"), lower.find(b"\n\n")) if at >= 0), default=len(head))
    line = b"\n" + name + b":"
    start = lower.find(line, 0, end)
    while start >= 0:
        start += len(line)
        stop = head.find(b"\n", start)
        yield head[start : stop if stop >= 0 else end].strip().decode("latin-1")
        start = lower.find(line, start, end)


def query_token(head: bytes) -> str | None:
    """Return the last ``token`` in the URL's query."""
    _, _, rest = head.partition(b"\n")[0].partition(b" ")
    query = b"&" + rest.partition(b" ")[0].partition(b"?")[2]
    _, separator, value = query.rpartition(b"&token=")
    token = value.partition(b"&")[0].strip()
    return unquote_plus(token.decode("latin-1")) if separator and len(token) <= MAX_TOKEN_BYTES else None


def cookie_value(header: str, name: str) -> str | None:
    """Return the first cookie with this name. Tornado's parser would drop all cookies if another server's is malformed."""
    start = header.find(f"{name}=")
    while start >= 0:
        if not start or header[start - 1] in "; \t":
            return header[start + len(name) + 1 :].partition(";")[0].strip()
        start = header.find(f"{name}=", start + 1)
    return None
