"""What the commands print with ``--json`` is what the schemas in docs/schemas say, with one rule for units."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from made_fleet import make_fleet

from tftracer.comparison.session_ops import OpChange

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests/data"
SCHEMAS = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "docs/schemas").glob("*.json")}
SQL = "SELECT trace_id, step, start_at, duration_ns, memory_peak_bytes, 'nan'::DOUBLE AS n FROM traces"
OPENED = ["versions/2-saved.tftrace", "versions/2-first-saved.tftrace", "ps_worker0_tf2.21_cpu.pb", "legacy/session.pickle",
          "xspace/gpu_v100_excerpt.xplane.pb.gz", "gpu_timeline_tf1.json"]  # fmt: skip
BEFORE, AFTER = DATA / "versions/2-first-saved.tftrace", DATA / "versions/2-saved.tftrace"


def printed(*arguments: object, folder: Path) -> Any:
    """The document; it holds no number that JSON does not have."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(folder), "TFTRACER_SPOOL_DIR": str(folder)}
    command = [sys.executable, "-m", "tftracer", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.stdout, done.stderr

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    return json.loads(done.stdout, parse_constant=refuse)


def check(name: str, document: Any) -> None:
    Draft202012Validator(SCHEMAS[name]).validate(document)


@pytest.mark.parametrize("file", OPENED)
def test_summaries_are_as_their_schema_says(file: str, tmp_path: Path) -> None:
    document = printed(DATA / file, "--summary", "--json", folder=tmp_path)
    check("summary", document)
    assert document["runs"] and (document["trace"] is None or document["budget"])


def test_comparisons_are_as_their_schema_says(tmp_path: Path) -> None:
    document = printed("compare", BEFORE, "--json", "--fail-if", "step > 5%", "--", AFTER, folder=tmp_path)
    check("compare", document)
    assert document["shifts"]["step"]["a"] > 0 and document["rules"]


def test_an_op_that_differs_is_told_from_one_that_chance_explains() -> None:
    schema = SCHEMAS["compare"]["properties"]["ops"]["properties"]["changes"]["items"]
    assert set(schema["properties"]) == {"delta_ns", *(field.name for field in fields(OpChange))}
    assert "separated" in schema["required"]


@pytest.mark.parametrize("sql", [SQL, f"{SQL}; SELECT 1 AS one", "CREATE TABLE one AS SELECT 1"])
def test_answers_are_as_their_schema_says(sql: str, tmp_path: Path) -> None:
    check("query", printed("query", AFTER, sql, "--json", folder=tmp_path))


def test_fleets_and_roofs_are_as_their_schemas_say(tmp_path: Path) -> None:
    make_fleet(tmp_path / "fleet", "nightly", ranks=4, steps=3)
    fleet = printed("fleet", tmp_path / "fleet", "--json", folder=tmp_path)
    check("fleet", fleet)
    assert all(fleet[part] for part in ("ranks", "ops", "collectives", "layers", "clocks"))
    check("roof", printed("roof", "--seconds", "0.01", "--json", folder=tmp_path))


def test_a_schema_notices_what_is_missing_or_has_another_type(tmp_path: Path) -> None:
    document = printed("compare", BEFORE, "--json", "--", AFTER, folder=tmp_path)
    for name in SCHEMAS["compare"]["required"]:
        with pytest.raises(ValidationError):
            check("compare", {key: value for key, value in document.items() if key != name})
        with pytest.raises(ValidationError):
            check("compare", {**document, name: 1 if name != "confidence" else "1"})


def numbers(schema: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """(name, description) of every number that is no count."""
    if isinstance(schema, list):
        for each in schema:
            yield from numbers(each, name)
    if isinstance(schema, dict):
        kinds = schema.get("type", "")
        if "number" in (kinds if isinstance(kinds, list) else [kinds]):
            yield name, schema.get("description", "")
        for key, value in schema.get("properties", {}).items():
            yield from numbers(value, key)
        for key in ("items", "anyOf", "additionalProperties"):
            yield from numbers(schema.get(key), name)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_number_has_its_unit_in_its_name_or_is_described(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
    plain = {"share", "flops", "bytes", "confidence", "spread", "values"}
    for number, description in numbers(SCHEMAS[name]):
        assert re.search(r"_(s|ns|at)$", number) or number in plain or description, number


def test_every_schema_is_in_the_docs_and_every_command_with_json_has_one() -> None:
    shown = set(re.findall(r"schemas/(\w+)\.json", (ROOT / "docs/json.rst").read_text(encoding="utf-8")))
    offered = {path.stem for path in (ROOT / "tftracer/commands").glob("*.py") if '"--json"' in path.read_text(encoding="utf-8")}
    assert shown == set(SCHEMAS) == offered | {"summary"}
