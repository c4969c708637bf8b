"""What becomes of a profile whose collection ends in an error: its problem says so at once. Without TensorFlow."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tftracer.capture.traces import shared_profiles


@pytest.mark.parametrize("error", [RuntimeError("no space"), SystemExit(), KeyboardInterrupt()], ids=repr)
def test_a_collection_that_ends_in_any_error_says_so(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    class Session:
        def start(self, folder: str, options: dict[str, Any]) -> None: ...

        def export_to_tb(self) -> None:
            raise error

    monkeypatch.setattr(shared_profiles, "bindings", lambda: SimpleNamespace(ProfilerSession=Session))
    profile = shared_profiles.Profile(0)
    profile.start()
    profile.collect()
    assert profile.is_collected() and profile.problem == f"TensorFlow's profiler failed: {str(error) or type(error).__name__}"
