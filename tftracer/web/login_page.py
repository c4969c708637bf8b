"""The login page: its HTML, style sheet and content policy."""

from __future__ import annotations

import html

POLICY = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tftracer: log in</title><link rel="icon" href="data:,"><link rel="stylesheet" href="{path}/login.css"></head>
<body><main><h1>tftracer</h1>
<p>This browser is not signed in, or its login has ended. Paste the whole URL that the script has logged, or only its token.</p>
<form method="post" action="{path}/login"><input type="hidden" name="next" value="{next}">
<label for="token">URL or token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Log in</button></form>
<p class="why" role="alert">{why}</p></main></body></html>
"""
STYLE = """:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { display: grid; min-height: 100vh; margin: 0; place-items: center; }
main { width: min(22rem, 90vw); }
form { display: grid; gap: .5rem; }
input, button { box-sizing: border-box; width: 100%; padding: .6rem; border: 1px solid #888; border-radius: 6px; font: inherit; }
button { border-color: #1668c7; background: #1668c7; color: #fff; cursor: pointer; }
:focus-visible { outline: 3px solid #7ab5ff; outline-offset: 1px; }
.why { min-height: 1.5em; color: #c22; }
"""


def render(path: str, following: str, why: str) -> str:
    """Return the page. ``path``: the reverse proxy's prefix. ``following``: the path after the login.

    ``why``: why the last login failed; "" if none did.
    """
    return PAGE.format(path=path, next=html.escape(following), why=html.escape(why))
