"""What ``tftracer roof --save`` keeps: for its machine alone, and nothing in the file is believed unseen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tftracer.contract.machine import MeasuredRoof
from tftracer.errors import StorageError
from tftracer.storage.roof_file import roof_path, save_roof, saved_roof

ROOF: MeasuredRoof = {
    "host": "node-7",
    "processor": "AMD EPYC 7B13",
    "measured_at": 1.7e9,
    "doubt": "",
    "devices": [
        {
            "kind": "CPU",
            "title": "AMD EPYC 7B13, 2 cores",
            "rates": [{"dtype": "float32", "flops_per_s": 2e11, "by": "NumPy 2.4.6"}],
            "bytes_per_s": 2.5e10,
        }
    ],
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_what_was_saved_is_read_on_that_machine_alone() -> None:
    path = save_roof(ROOF)
    assert path == roof_path("node-7") and saved_roof("node-7", "AMD EPYC 7B13") == ROOF
    assert saved_roof("node-7", "Intel Xeon") is None  # another machine has the name now
    assert saved_roof("node-8", "AMD EPYC 7B13") is None
    assert saved_roof("", "AMD EPYC 7B13") is None and saved_roof("node-7", "") is None


def test_a_host_s_name_is_no_way_out_of_the_folder(cache: Path) -> None:
    assert roof_path("../../etc/passwd").parent == cache / "tftracer/roofs"


@pytest.mark.parametrize("content", ["", "{", "[]", "7", '{"host": 7}', "[" * 100_000, '{"host": "node-7"}'])
def test_a_damaged_file_is_none(content: str) -> None:
    save_roof(ROOF)
    roof_path("node-7").write_text(content)
    assert saved_roof("node-7", "AMD EPYC 7B13") is None


@pytest.mark.parametrize("rate", [-1.0, 0, 1e300, "fast", None, True])
def test_rates_that_no_machine_has_are_left_out(rate: Any) -> None:
    device: Any = {**ROOF["devices"][0], "rates": [{"dtype": "float32", "flops_per_s": rate, "by": ""}], "bytes_per_s": rate}
    save_roof({**ROOF, "devices": [device, "x"]})  # type: ignore[list-item]
    read = saved_roof("node-7", "AMD EPYC 7B13")
    assert read is not None and [(one["rates"], one["bytes_per_s"]) for one in read["devices"]] == [([], None)]


def test_a_cache_that_cannot_be_written(cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="XDG_CACHE_HOME"):
        save_roof(ROOF)
