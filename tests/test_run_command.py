"""What ``tftracer run`` hands on to the script's processes. tests/tf/test_run_command.py runs scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tftracer.commands.run import checked, environment_of, parser
from tftracer.run_process import VARIABLE


def handed_on(*options: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(environment_of(checked(parser(), list(options), ["train.py"]), "")[VARIABLE])
    return made


def test_paths_mean_the_same_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = handed_on("--export-dir", "tables", "--output", "s.tftrace")
    assert (asked["server"]["export_dir"], asked["output"]) == (str(tmp_path / "tables"), str(tmp_path / "s.tftrace"))
    assert handed_on("--export-dir", "s3://bucket/tables")["server"]["export_dir"] == "s3://bucket/tables"
    assert handed_on()["server"]["export_dir"] is None
