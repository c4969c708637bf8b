"""What a page without a step says of the script."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

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
