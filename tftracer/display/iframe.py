"""Shows a whole HTML page in a notebook, in a frame that is isolated from it.

A small page is stored in the notebook. A larger page would make the notebook slow to open and to save, so it is written to a file
in the notebook's folder (the kernel's working folder), and the frame loads the file.
"""

from __future__ import annotations

import hashlib
import html
import re
from dataclasses import dataclass
from pathlib import Path

from tftracer.display import markup
from tftracer.errors import StorageError
from tftracer.storage.whole_file import write_whole

#: Maximum bytes of a page that is stored in the notebook.
MAX_INLINE = 1_000_000
#: Default, minimum and maximum height of a frame, in pixels.
HEIGHT, MIN_HEIGHT, MAX_HEIGHT = 640, 100, 10_000
#: The page may run its own scripts and download files. It has no origin, so it can access neither the notebook nor its server.
SANDBOX = "allow-scripts allow-downloads"
_STYLE = "width: 100%; border: 1px solid rgba(128, 128, 128, 0.35); border-radius: 4px; background: transparent"


@dataclass(frozen=True)
class Frame:
    """A page in a frame. A notebook shows it as the value of a cell. ``file``: the page's file; "" if it is in the notebook."""

    title: str
    html: str
    file: str = ""

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return f"<Frame {self.title}: {f'in {self.file}' if self.file else 'inside the notebook'}>"


def framed(page: str, title: str, height: int = HEIGHT) -> Frame:
    """Put a page into a frame. ``page``: a whole HTML page. ``title``: the frame's title, and a part of the file's name."""
    content = page.encode("utf-8")
    if len(content) <= MAX_INLINE:
        return Frame(title, _frame(f'srcdoc="{html.escape(page)}"', title, height))
    path = Path.cwd() / file_name(title, content)
    try:
        write_whole(str(path), [content])
    except StorageError as error:
        why = f"The viewer is inside this notebook and makes it {len(content) / 1e6:.1f} MB larger: {error}"
        return Frame(title, _frame(f'srcdoc="{html.escape(page)}"', title, height) + markup.block("", markup.note(why)))
    message = f"The viewer is in {path} ({len(content) / 1e6:.1f} MB), beside the notebook: keep them together."
    return Frame(title, _frame(f'src="{path.name}"', title, height) + markup.block("", markup.note(message)), str(path))


def _frame(source: str, title: str, height: int) -> str:
    height_style = f"height: {min(max(int(height), MIN_HEIGHT), MAX_HEIGHT)}px"
    return f'<iframe title="{markup.text(title)}" sandbox="{SANDBOX}" style="{height_style}; {_STYLE}" {source}></iframe>'


def file_name(title: str, content: bytes) -> str:
    """Return a name that is safe as a file name and in a URL, and that is different for different content."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", title).strip("-")[:60] or "trace"
    return f"tftracer-{readable}-{hashlib.sha256(content).hexdigest()[:16]}.html"
