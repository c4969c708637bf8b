"""The page and its files. An unauthenticated client gets the login page (login_page.py) and its style sheet, nothing else."""

from __future__ import annotations

import html
from urllib.parse import parse_qsl, urlencode

from tornado import web

from tftracer.web import login_page
from tftracer.web.access_check import without_prefix
from tftracer.web.base_handler import Guarded
from tftracer.web.refusal import Refusal
from tftracer.web.static_files import File

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self' ws://{host} wss://{host}; worker-src 'self'; manifest-src 'self'; "
    "base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)
#: Browsers send no SameSite=Strict cookie after a link on another site, but they do after a redirect by a page of this server.
REDIRECT_PAGE = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>tftracer</title>\
<meta http-equiv="refresh" content="0; url={url}"></head><body></body></html>'
YEAR = 365 * 24 * 3600


class PageHandler(Guarded):
    """A handler that answers with HTML: an unauthenticated client gets the login page instead of an error."""

    needs_key = False  # these files are the same for everybody; all data comes from the API

    def inner_path(self) -> str:
        """The path without the reverse proxy's prefix."""
        return without_prefix(self.request.path, self.services.path_prefix) or "/"

    def base(self) -> str:
        """The path's part between the reverse proxy's prefix and ``inner_path``; "" except for pages of a job's processes."""
        return ""

    def public_url(self) -> str:
        """The URL of this page, without the token."""
        query = [(k, v) for k, v in parse_qsl(self.request.query, keep_blank_values=True) if k != "token"]
        path = self.base() + "/" + self.inner_path().lstrip("/\\")  # `//host` would be another site
        return self.services.path_prefix + path + ("?" + urlencode(query) if query else "")

    def write_refusal(self, code: str, message: str) -> None:
        if code == "no_token":
            self.show_login(message if self.request.method == "POST" or self.url_token() else "")
        else:
            super().write_refusal(code, message)

    def url_token(self) -> str:
        return self.get_query_argument("token", "")

    def show_login(self, why: str) -> None:
        self.set_header("Content-Security-Policy", login_page.POLICY)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.set_header("Referrer-Policy", "same-origin")  # without it the form's Origin would be "null"
        self.write(login_page.render(self.services.path_prefix, self.path_after_login(), why))

    def path_after_login(self) -> str:
        return self.public_url()

    def sign_in(self) -> str:
        """Set the browser's cookie; return the URL fragment with the page's key."""
        access = self.services.access
        self.set_header("Set-Cookie", access.cookie())
        return f"#key={access.logins.key}"

    def redirect_without_token(self, fragment: str = "") -> None:
        """Redirect to this page without the token, in a way that makes the browser send the cookie."""
        url = self.public_url() + fragment
        if self.request.headers.get("Sec-Fetch-Site") == "cross-site":
            self.set_header("Content-Type", "text/html; charset=utf-8")
            self.finish(REDIRECT_PAGE.format(url=html.escape(url)))
        else:
            self.redirect(url)
        raise web.Finish

    def send_file(self, file: File) -> None:
        self.set_header("Content-Type", file.content_type)
        self.set_header("Etag", file.tag)
        self.set_header("Vary", "Accept-Encoding")
        cache_control = f"private, max-age={YEAR}, immutable" if file.hashed else "private, no-cache"
        self.set_header("Cache-Control", cache_control)
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
        token = self.url_token()
        if token:
            self._check_url_token(token)
        access = self.services.access
        is_cross_site = self.request.headers.get("Sec-Fetch-Site") == "cross-site"
        if is_cross_site and not access.logins.has_cookie(self.cookie()) and "Authorization" not in self.request.headers:
            self.redirect_without_token()
        super().check_token()

    def _check_url_token(self, token: str) -> None:
        access = self.services.access
        if not access.is_token(token) and not (self.request.method == "GET" and access.logins.use_code(token)):
            why = "This is not the token of this server. Was the script restarted? A link from a notebook works once."
            self.refuse_stranger(why)
        self.redirect_without_token(self.sign_in())

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
