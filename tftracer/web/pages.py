"""The page, its files, and the login page. An unauthenticated client can load only the login page and its style sheet."""

from __future__ import annotations

import html
from urllib.parse import parse_qsl, urlencode

from tornado import web

from tftracer.web.access_check import without_prefix
from tftracer.web.guard import Guarded
from tftracer.web.refusal import Refusal
from tftracer.web.static_files import File

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self' ws://{host} wss://{host}; worker-src 'self'; manifest-src 'self'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
LOGIN_POLICY = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
LOGIN = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>tftracer: log in</title><link rel="icon" href="data:,"><link rel="stylesheet" href="{path}/login.css"></head>
<body><main><h1>tftracer</h1>
<p>This browser is not signed in, or its login has ended. Paste the URL that the script has logged, whole, or its token alone.</p>
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
#: Browsers send no SameSite=Strict cookie after a link on another site, but they do after a redirect by a page of this server.
ONWARD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>tftracer</title>\
<meta http-equiv="refresh" content="0; url={url}"></head><body></body></html>'
YEAR = 365 * 24 * 3600


class PageHandler(Guarded):
    """A handler that answers with HTML: an unauthenticated client gets the login page instead of an error."""

    needs_key = False  # these files are the same for everybody; all data comes from the API

    def inner_path(self) -> str:
        """The path without the reverse proxy's prefix."""
        return without_prefix(self.request.path, self.services.path) or "/"

    def public_url(self) -> str:
        """The URL of this page, without the token."""
        query = [(k, v) for k, v in parse_qsl(self.request.query, keep_blank_values=True) if k != "token"]
        path = "/" + self.inner_path().lstrip("/\\")  # `//host` would be another site
        return self.services.path + path + ("?" + urlencode(query) if query else "")

    def write_error(self, status_code: int, **kwargs: object) -> None:
        problem = kwargs.get("exc_info", (None, None, None))[1]  # type: ignore[index]
        if isinstance(problem, Refusal) and problem.code == "no_token":
            for name, value in problem.headers.items():
                self.set_header(name, value)
            self.show_login(problem.message if self.request.method == "POST" or self.given_token() else "")
            return
        super().write_error(status_code, **kwargs)

    def given_token(self) -> str:
        return self.get_query_argument("token", "")

    def show_login(self, why: str) -> None:
        self.set_header("Content-Security-Policy", LOGIN_POLICY)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Referrer-Policy", "same-origin")  # without it the form's Origin would be "null"
        self.write(LOGIN.format(path=self.services.path, next=html.escape(self.login_next()), why=html.escape(why)))

    def login_next(self) -> str:
        return self.public_url()

    def sign_in(self) -> str:
        """Set the browser's cookie; return the URL fragment with the page's key."""
        access = self.services.access
        self.set_header("Set-Cookie", access.cookie())
        return f"#key={access.logins.key}"

    def lead_on(self, fragment: str = "") -> None:
        """Redirect to this page without the token, in a way that makes the browser send the cookie."""
        url = self.public_url() + fragment
        if self.request.headers.get("Sec-Fetch-Site") == "cross-site":
            self.set_header("Content-Type", "text/html; charset=utf-8")
            self.finish(ONWARD.format(url=html.escape(url)))
        else:
            self.redirect(url)
        raise web.Finish

    def send_file(self, file: File) -> None:
        self.set_header("Content-Type", file.content_type)
        self.set_header("Etag", file.tag)
        self.set_header("Vary", "Accept-Encoding")
        keep = f"private, max-age={YEAR}, immutable" if file.hashed else "private, no-cache"
        self.set_header("Cache-Control", keep)
        if self.request.headers.get("If-None-Match") == file.tag:
            self.set_status(304)
        elif file.gzipped and "gzip" in self.request.headers.get("Accept-Encoding", ""):
            self.set_header("Content-Encoding", "gzip")
            self.write(file.gzipped)
        else:
            self.write(file.data)


class AppHandler(PageHandler):
    """The single-page application on each of its routes, and its files."""

    def check_token(self) -> None:
        given = self.given_token()
        if given:
            self._check_given(given)
        access = self.services.access
        crossing = self.request.headers.get("Sec-Fetch-Site") == "cross-site"
        if crossing and not access.logins.has_cookie(self.cookie()) and "Authorization" not in self.request.headers:
            self.lead_on()
        super().check_token()

    def _check_given(self, given: str) -> None:
        access = self.services.access
        if not access.is_token(given) and not (self.request.method == "GET" and access.logins.use_code(given)):
            why = "This is not the token of this server. Was the script restarted? A link from a notebook works once."
            self.refuse_stranger(why)
        self.lead_on(self.sign_in())

    def get(self, **named: str) -> None:
        name = self.inner_path().lstrip("/")
        file = self.services.static.file(name) if name and name != "index.html" else None
        if file is None and "." in name.rpartition("/")[2] and name != "index.html":
            raise Refusal(404, "unknown_route", f"There is no {self.request.path[:200]}.")
        if file is None:
            file = self.services.static.index()
        if file.content_type.startswith("text/html"):
            self.set_header("Content-Security-Policy", PAGE_POLICY.format(host=self.request.host))
            self.set_header("Referrer-Policy", "same-origin")  # without it the login form's Origin would be "null"
        self.send_file(file)

    def compute_etag(self) -> str | None:
        return None  # the file has its own tag


class LoginHandler(PageHandler):
    """The login form, and what it sends."""

    body_type = "application/x-www-form-urlencoded"
    body_limit = 1 << 13

    def check_token(self) -> None:
        """Check nothing: the token is in the request's body."""

    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=10))

    def login_next(self) -> str:
        """Return the path to redirect to, always one of this server, whatever the form contains."""
        try:
            wanted = self.form().get("next", "") if self.body else self.get_query_argument("next", "")
        except ValueError:
            wanted = ""
        here = wanted.startswith("/") and not wanted.startswith("//") and "\\" not in wanted and wanted.isprintable()
        return wanted if here else self.services.path + "/"

    def get(self) -> None:
        """Show the form. The page redirects here when its login has ended."""
        self.refuse_stranger("This page needs the session's token.")

    def post(self) -> None:
        access = self.services.access
        try:
            given = token_in(self.form().get("token", ""))
        except ValueError:
            given = ""
        if not access.is_token(given):
            raise Refusal(401, "no_token", "This is not the token of this server.")
        self.redirect(self.login_next().partition("#")[0] + self.sign_in(), status=303)


def token_in(text: str) -> str:
    """Return the token from the form's text, which may be a URL. Raises ValueError for a query with too many fields."""
    query = text.strip().partition("#")[0].partition("?")[2]
    return dict(parse_qsl(query, max_num_fields=100)).get("token", "") or text.strip()


class LoginStyleHandler(Guarded):
    """The login page's style sheet; it needs no token."""

    def check_token(self) -> None:
        """The style sheet needs no token."""

    def get(self) -> None:
        self.set_header("Content-Type", "text/css; charset=utf-8")
        self.write(STYLE)
