"""The handler of the login form, which an unauthenticated browser gets in place of each page (pages.py)."""

from __future__ import annotations

from urllib.parse import parse_qsl

from tftracer.web.base_handler import Guarded
from tftracer.web.login_page import STYLE
from tftracer.web.pages import PageHandler
from tftracer.web.refusal import Refusal


class LoginHandler(PageHandler):
    """Shows the login form (GET), and signs the browser in with the token that it sends (POST)."""

    body_type = "application/x-www-form-urlencoded"
    body_limit = 1 << 13

    def check_token(self) -> None:
        """Check nothing: the token is in the request's body."""

    def form(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=10))

    def path_after_login(self) -> str:
        """Return the path to redirect to, always one of this server, whatever the form contains."""
        try:
            path = self.form().get("next", "") if self.body else self.get_query_argument("next", "")
        except ValueError:
            path = ""
        is_on_this_server = path.startswith("/") and not path.startswith("//") and "\\" not in path and path.isprintable()
        return path if is_on_this_server else self.services.path_prefix + "/"

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
        self.redirect(self.path_after_login().partition("#")[0] + self.sign_in(), status=303)


def token_in(text: str) -> str:
    """Return the token from the form's text, which may be a URL. Raises ValueError for a query with too many fields."""
    query = text.strip().partition("#")[0].partition("?")[2]
    return dict(parse_qsl(query, max_num_fields=100)).get("token", "") or text.strip()


class LoginStyleHandler(Guarded):
    """Sends the login page's style sheet; needs no token."""

    def check_token(self) -> None:
        """Check nothing: the style sheet needs no token."""

    def get(self) -> None:
        self.set_header("Content-Type", "text/css; charset=utf-8")
        self.write(STYLE)
