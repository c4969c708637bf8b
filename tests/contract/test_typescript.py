"""The page's types are generated from the wire contract and never stale."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TypedDict

import pytest

from tftracer.contract import typescript
from tftracer.contract.analyses import Analysis

GENERATED = Path(__file__).parents[2] / "frontend/src/client/messages.ts"

#: A contributor's tool: contributors have Python 3.10 or 3.11.
pytestmark = pytest.mark.skipif(sys.version_info < (3, 10), reason="Python 3.9 cannot evaluate the annotations that it reads")


def test_the_committed_types_are_what_the_contract_says() -> None:
    assert GENERATED.read_text(encoding="utf-8") == typescript.generate(), "run `make frontend-types`"


class Shares(TypedDict):
    of_total: float


def test_the_message_of_an_analysis_is_declared_whichever_module_it_is_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(typescript, "ANALYSES", [Analysis("shares", "shares", Shares)])
    generated = typescript.generate()
    assert "export interface Shares {\n  of_total: number;\n}" in generated
    assert '"shares": Shares;' in generated


def test_a_type_that_the_wire_cannot_carry_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot carry"):
        typescript.type_script(complex)


def test_unions_inside_lists_are_bracketed() -> None:
    assert typescript.type_script(list[int]) == "number[]"
    assert typescript.type_script(dict[str, float]) == "Record<string, number>"
