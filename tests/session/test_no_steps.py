"""What a page without a step says of the script."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from job_page import wait_for
from recording import recording

from tftracer.session.writer.no_steps import EAGER, JAX, SERVER, no_steps


def keras(backend: str) -> SimpleNamespace:
    return SimpleNamespace(config=SimpleNamespace(backend=lambda: backend))


@pytest.mark.parametrize(
    ("modules", "role", "sees_all_sessions", "words"),
    [
        ({"tensorflow": None}, "", True, EAGER),
        ({"tensorflow": None}, "", False, ""),  # the page shows how to pass the hook
        ({"jax": None}, "", True, JAX),
        ({"keras": keras("tensorflow"), "jax": None}, "", True, EAGER),
        ({"keras": SimpleNamespace()}, "", True, EAGER),  # Keras 2, or half imported
        ({"tensorflow": None}, "ps", True, SERVER),
    ],
)
def test_the_remedy_is_for_what_the_script_is(modules: dict[str, object], role: str, sees_all_sessions: bool, words: str) -> None:
    assert no_steps(modules, role, sees_all_sessions) == words


def test_another_backend_of_keras_is_named() -> None:
    for backend in ("torch", "jax"):
        text = no_steps({"keras": keras(backend), "tensorflow": None}, "", True)
        assert f"Keras computes with {backend}" in text and "KERAS_BACKEND=tensorflow" in text
        assert ("jax.profiler" in text) == (backend == "jax")


def test_a_session_without_a_hook_names_its_tensorflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(__version__="2.21.0"))
    with recording(tmp_path) as recorder:
        wait_for(lambda: recorder.session()["tensorflow"] == "2.21.0", "the release of TensorFlow")
