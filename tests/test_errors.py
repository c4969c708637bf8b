"""The errors that users see: exported, each also one of Python's own, with its message as it is."""

from __future__ import annotations

import inspect
import pickle
from pathlib import Path

import pytest

import tftracer
from tftracer import errors

BUILTIN = {
    "FormatError": ValueError,
    "PatternError": ValueError,
    "UnsafePickleError": ValueError,
    "UsageError": ValueError,
    "TruncatedError": ValueError,
    "StorageError": OSError,
    "PortError": OSError,
    "UnknownError": KeyError,
    "MissingTensorFlowError": ImportError,
    "UnsupportedError": RuntimeError,
    "HelperError": RuntimeError,
}


def test_every_error_is_exported_and_has_a_builtin_base() -> None:
    ours = {name: kind for name, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__}
    assert set(ours) == {"TracerError", *BUILTIN}
    for name, kind in ours.items():
        assert getattr(tftracer, name) is kind and name in tftracer.__all__ and name in dir(tftracer)
        assert issubclass(kind, tftracer.TracerError) and issubclass(kind, BUILTIN.get(name, Exception))


@pytest.mark.parametrize("name", BUILTIN)
def test_a_message_stays_as_it_is(name: str) -> None:
    error = getattr(tftracer, name)("There is no 'run' 3.")
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == "There is no 'run' 3."


def test_python_s_own_errors_catch_what_open_and_its_tables_raise(tmp_path: Path) -> None:
    data = Path(__file__).parent / "data"
    with pytest.raises(OSError, match="nothing-here"):
        tftracer.open(tmp_path / "nothing-here.tftrace")
    with pytest.raises(ValueError, match="cut"):
        tftracer.open(data / "invalid/pb-cut.bin")
    with tftracer.open(data / "while_loop_tf2.15_cpu.pb") as session:
        with pytest.raises(KeyError, match="no such column"):
            session.slices()["no such column"]
        with pytest.raises(KeyError, match="no run"):
            session.run("no such run")
