"""Fixtures that several test files share, and how hypothesis searches."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest
from local_jobs import jobs
from web_client import certificate, client, no_stray_logs, source

with contextlib.suppress(ImportError):  # not in every environment
    from hypothesis import HealthCheck, settings

    # A busy machine may pause any example for seconds; that says nothing about the code.
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")

# A shell starts what runs in its background with SIGINT ignored, and children inherit that: the viewer could not be ended by it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Nothing here is reached through a proxy that this machine may have.
os.environ["no_proxy"] = os.environ["NO_PROXY"] = "127.0.0.1,localhost,::1"

# Without oneDNN a CPU has no gradients of grouped convolutions. TensorFlow switches it on by itself only on some CPUs.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")

#: Files whose tests start a long training each, which mostly sleeps: these come first, each on its own.
LONG = ("test_memory_growth.py", "test_whole_steps.py", "test_fault_injection.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests of a file share its fixtures: where several processes run tests, one process gets the whole file."""
    items.sort(key=lambda item: item.path.name not in LONG)
    for item in items if config.pluginmanager.hasplugin("xdist") else []:
        if item.path.name not in LONG:
            item.add_marker(pytest.mark.xdist_group(f"{item.path.parent.name}/{item.path.name}"))


__all__ = ["certificate", "client", "jobs", "no_stray_logs", "source"]
