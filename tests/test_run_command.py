"""What ``tftracer run`` hands on to the script's processes. tests/tf/test_run_command.py runs scripts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tftracer.commands.run import checked, environment_of, main, parser
from tftracer.run_in_script import VARIABLE


def test_unattended_traces_are_handed_on() -> None:
    assert handed_on()["trace"] is None
    assert handed_on("--trace", "5", "--from", "100")["trace"] == [5, 100]
    assert handed_on("--trace=5")["trace"] == [5, 20]
    for wrong in (["--trace", "0"], ["--trace", "5", "--from", "0"]):
        with pytest.raises(SystemExit):
            handed_on(*wrong)


def handed_on(*options: str) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(environment_of(checked(parser(), list(options), ["train.py"]), "")[VARIABLE])
    return made


def test_two_scripts_are_recorded_in_turns(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A script that records nothing leaves no session, and what it prints tells the order."""
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(f"import sys; print('{name}', sys.argv[1:])")
    said: list[str] = []
    scripts = ["--", str(tmp_path / "one.py"), "--steps", "3", "--", str(tmp_path / "two.py")]
    assert main(["--repeat", "2", "--output", str(tmp_path / "out"), *scripts], said.append) == 0
    lines = [line for line in capfd.readouterr().out.splitlines() if ".py" in line]
    assert lines == ["one.py ['--steps', '3']", "two.py []"] * 2
    assert said[-1].strip() == f"tftracer compare {tmp_path}/out/a-*.tftrace -- {tmp_path}/out/b-*.tftrace"


def test_a_script_that_fails_ends_the_turns(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text("raise SystemExit(3)")
    said: list[str] = []
    script = str(tmp_path / "fails.py")
    assert main(["--repeat", "5", "--output", str(tmp_path / "out"), "--", script, "--", script], said.append) == 3
    assert "ended with exit code 3 in round 1" in said[0]


@pytest.mark.parametrize("wrong", [["--repeat", "2", "--", "one.py"], ["--repeat", "0", "--", "a", "--", "b"]])
def test_turns_need_two_scripts_and_a_number(wrong: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(wrong, print)
    assert ended.value.code == 2


def test_a_misspelt_option_is_named_and_not_the_one_after_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--otput", "--port", "0", "train.py"], print)
    assert ended.value.code == 2
    assert "unrecognized arguments: --otput. Did you mean '--output'?" in capsys.readouterr().err


def test_paths_mean_the_same_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asked = handed_on("--export-dir", "tables", "--output", "s.tftrace")
    assert (asked["server"]["export_dir"], asked["output"]) == (str(tmp_path / "tables"), str(tmp_path / "s.tftrace"))
    assert handed_on("--export-dir", "s3://bucket/tables")["server"]["export_dir"] == "s3://bucket/tables"
    assert handed_on()["server"]["export_dir"] is None
