"""The page's files in tftracer/static, which the front-end build wrote. They are read on demand and compressed once."""

from __future__ import annotations

import gzip
import hashlib
import html
import mimetypes
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "static"
#: Content types. The operating system's table is not used, because it may have text/plain for scripts, which nosniff would block.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json; charset=utf-8",
    ".woff2": "font/woff2",
    ".png": "image/png",
    ".ico": "image/x-icon",
}
HASH_CHARS = 8  # minimum length of the hash after a dash in the name of a built file
COMPRESSED = {".html", ".js", ".css", ".svg", ".json"}
NOT_BUILT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>tftracer</title></head>
<body><h1>The page is not built</h1>
<p>This is a checkout without the built front-end: run <code>make frontend</code> (it needs Node) and reload.
Training, tracing and the HTTP API work without it.</p></body></html>"""


@dataclass(frozen=True)
class File:
    content_type: str
    data: bytes
    gzipped: bytes  # b"" for small or incompressible files
    tag: str
    hashed: bool  # the name contains a hash of the content, so the file may be cached for ever


def with_base(page: bytes, path: str) -> bytes:
    """Set ``<base href>`` in index.html, so that its relative links work on every route and behind a prefix."""
    text = re.sub(r"<base\b[^<>]*>", "", page.decode("utf-8"), count=1)
    base = f'<base href="{html.escape(path)}/">'
    return re.sub(r"<head[^<>]*>", lambda head: head.group() + base, text, count=1).encode()


class Static:
    """The files below one folder, and never a file outside it."""

    def __init__(self, path: str = "", root: Path = ROOT) -> None:
        self._path = path
        self._root = root.resolve()
        self._files: dict[tuple[str, int, int], File] = {}

    def index(self) -> File:
        return self.file("index.html") or self._make("index.html", NOT_BUILT.encode())

    def file(self, name: str) -> File | None:
        """Return a file; None if it does not exist. A file that a build has changed is read again."""
        try:
            path = (self._root / name).resolve()
            if self._root not in path.parents or not path.is_file():
                return None
            state = path.stat()
            key = (name, state.st_mtime_ns, state.st_size)
            if key not in self._files:
                self._files[key] = self._make(name, path.read_bytes())
            return self._files[key]
        except (OSError, ValueError):  # a NUL, or a name that is too long
            return None

    def _make(self, name: str, data: bytes) -> File:
        suffix = Path(name).suffix.lower()
        if name == "index.html":
            data = with_base(data, self._path)
        kind = TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        gzipped = gzip.compress(data, 9, mtime=0) if suffix in COMPRESSED and len(data) > 1024 else b""
        tag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
        return File(kind, data, gzipped, tag, "-" in Path(name).stem[:-HASH_CHARS])
