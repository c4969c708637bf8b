"""The built page's script and style (tftracer/static), as the standalone HTML file carries them."""

from __future__ import annotations

import functools
import re
from importlib import resources

from tftracer.errors import StorageError


@functools.lru_cache(maxsize=1)
def script() -> tuple[str, str]:
    """The script, deflated in base64, and its hash for the content security policy. The build of the page made both."""
    digest, deflated = _asset("standalone.script").splitlines()
    return deflated, digest


@functools.lru_cache(maxsize=1)
def style() -> str:
    return inside_style_element(_asset("standalone.css"))


def inside_style_element(css: str) -> str:
    """In a style element nothing but its own end tag is special."""
    return re.sub(r"</(?=style)", r"<\\/", css, flags=re.IGNORECASE)


def _asset(name: str) -> str:
    try:
        return resources.files("tftracer").joinpath("static", name).read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"{name} is missing in tftracer/static: the package is incomplete. Install it again, or run `make frontend`"
        ) from error
