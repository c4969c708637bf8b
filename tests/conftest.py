"""Fixtures that several test files share."""

from web_client import client, no_stray_logs, source

__all__ = ["client", "no_stray_logs", "source"]
