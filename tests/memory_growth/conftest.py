"""Objects are counted in these tests, however many the process of the tests holds."""

from __future__ import annotations

import pytest

from tftracer.memory_growth import object_counts


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_counts, "MAX_BLOCKS", 10**9)
    monkeypatch.setattr(object_counts, "MAX_HELD_S", 1e9)
