"""Where a process's own page can be reached, as the process itself sees it."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass

from tftracer.job.agent.discovery import Target
from tftracer.web.auth import WILDCARDS


@dataclass(frozen=True)
class OwnPage:
    """Address and token of this process's web server."""

    ip: str  # as bound
    port: int
    secure: bool
    path: str
    token: str

    @property
    def host(self) -> str:
        """To connect to from this process."""
        return "127.0.0.1" if self.ip in WILDCARDS else self.ip

    @property
    def is_loopback(self) -> bool:
        """Whether only this host can reach it."""
        try:
            return ipaddress.ip_address(self.ip or "0.0.0.0").is_loopback
        except ValueError:
            return self.ip == "localhost"

    @property
    def address(self) -> str:
        """``host:port`` as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def target(self, token: str) -> Target:
        """For the agent of the hub's own process."""
        return Target(self.host, self.port, token, self.secure, self.path, "own")

    def tls_context(self) -> ssl.SSLContext | None:
        """Verifies nothing: the server is this process itself. None without TLS."""
        return unverified() if self.secure else None


def unverified() -> ssl.SSLContext:
    """For servers of this user on this host."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
