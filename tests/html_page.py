"""A standalone HTML page as a browser reads it: its elements, and the answers that it carries."""

from __future__ import annotations

import base64
import zlib
from html.parser import HTMLParser
from typing import Any

import msgpack


class Page(HTMLParser):
    """What a browser's parser makes of the page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.title = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif self._inside == "title":
            self.title += data

    def script(self, identity: str | None) -> str:
        (text,) = [text for attrs, text in self.scripts if attrs.get("id") == identity]
        return text

    def data(self) -> dict[str, Any]:
        """The session, the trace and the answers, as ``contract.standalone.Embedded`` has them."""
        data: dict[str, Any] = msgpack.unpackb(inflated(self.script("tftracer-data")), raw=False)
        return data

    def answer(self, path: str) -> Any:
        """One answer, under the path that the live page asks for."""
        return msgpack.unpackb(self.data()["answers"][path], raw=False)


def inflated(base64_text: str) -> bytes:
    return zlib.decompress(base64.b64decode(base64_text))
