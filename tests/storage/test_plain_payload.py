"""A trace that is another tool's whole file stays in that file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tftracer.errors import FormatError
from tftracer.session.files.imported import PlainPayload
from tftracer.session.files.saved import open_session

RAW = (Path(__file__).parents[1] / "data/ps_worker0_tf2.21_cpu.pb").read_bytes()


def test_it_is_read_where_it_lies_and_compressed_where_it_is_saved(tmp_path: Path) -> None:
    path = tmp_path / "step.pb"
    path.write_bytes(RAW)
    session = open_session(path)
    assert isinstance(session.trace_state(1).payload, PlainPayload) and session.trace_bytes(1) == RAW
    session.save(str(tmp_path / "saved.tftrace"))
    again = open_session(tmp_path / "saved.tftrace")
    again.check_payloads()
    assert again.trace_bytes(1) == RAW and again.trace_record(1)["stored_bytes"] < len(RAW) / 2
    path.unlink()
    assert session.trace_bytes(1) == RAW  # it is held open


@pytest.mark.parametrize("changed", [RAW[:-1], RAW + b"x", RAW[::-1]], ids=["shorter", "longer", "another"])
def test_a_file_that_has_changed_since_is_not_read_as_what_it_was(changed: bytes, tmp_path: Path) -> None:
    path = tmp_path / "step.pb"
    path.write_bytes(RAW)
    session = open_session(path)
    with path.open("r+b") as file:
        file.write(changed)
        file.truncate()
    with pytest.raises(FormatError, match="has changed since it was opened"):
        session.trace_bytes(1)
    session.check_payloads()
    assert session.trace_record(1)["state"] == "broken" and "1 trace is damaged" in session.session()["damage"]


def test_what_was_packed_is_kept_in_memory(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "step.pb.gz"
    path.write_bytes(gzip.compress(RAW))
    session = open_session(path)
    path.write_bytes(b"")
    assert session.trace_bytes(1) == RAW and not isinstance(session.trace_state(1).payload, PlainPayload)
