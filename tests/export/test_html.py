"""The standalone page: everything inside, nothing fetched, names stay text, the columns say what node_detail says."""

from __future__ import annotations

import base64
import gzip
import hashlib
import re
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgpack
import numpy as np
import pytest
from html_page import Page, inflated
from traces import GPU, H2D, STREAM, N, make_trace

from tftracer.contract.analyses import ANALYSES
from tftracer.errors import StorageError
from tftracer.export import html
from tftracer.export.node_table import node_table
from tftracer.session.one_trace import record_of, session_of
from tftracer.trace.answers import Answers
from tftracer.trace.arrays.columns import array
from tftracer.trace.model import NodeKind, TraceContext

DATA = Path(__file__).parents[1] / "data"
FILES = sorted(DATA.glob("*.pb"))


def answers_of(path: Path, **context: Any) -> Answers:
    return Answers(path.read_bytes(), TraceContext(**context))


def page_of(answers: Answers) -> str:
    record = record_of(answers)
    return "".join(html.page_of(answers, record, session_of(record)))


def test_the_page_carries_all_answers() -> None:
    answers = answers_of(DATA / "ps_worker0_tf2.21_cpu.pb", title="train_op")
    page = Page(page_of(answers))
    data = page.data()
    carried = {path: msgpack.unpackb(body, raw=False) for path, body in data["answers"].items()}
    for analysis in ANALYSES:
        if "index" in analysis.parameters:
            continue  # the table of nodes has it
        limit = {"limit": analysis.standalone_rows} if analysis.standalone_rows else {}
        for arguments in analysis.choices():
            path = f"{analysis.path}?{urlencode(arguments)}" if arguments else analysis.path
            answer = getattr(answers, analysis.name)(**arguments, **limit)
            own_id = {"trace_id": data["trace"]["id"]} if "trace_id" in answer else {}
            assert carried.pop(path) == {**answer, **own_id}, path
    assert carried == {}
    assert data["session"]["runs"][0]["traces"][0]["id"] == data["trace"]["id"]
    assert "train_op" in page.title


def test_the_policy_allows_the_page_s_own_script_and_nothing_else() -> None:
    text = page_of(answers_of(DATA / "foreign" / "step.pb"))
    page = Page(text)
    policy = next(attrs["content"] or "" for tag, attrs in page.tags if attrs.get("http-equiv"))
    assert policy.startswith("default-src 'none';")
    assert "unsafe-inline' '" not in policy
    bundle = inflated(page.script("tftracer-script"))
    for script in (page.script(None).encode(), bundle):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(script).digest()).decode()}'" in policy
    assert not [attrs for _, attrs in page.tags if attrs.get("src") or attrs.get("href")]
    assert not re.search(r"url\(\s*['\"]?https?:", text)


@pytest.mark.parametrize("name", ["</script><script>alert(1)</script>", "<!--", "<img src=x onerror=alert(1)>", "]]>", "&lt;"])
def test_a_name_stays_a_name(name: str) -> None:
    trace = make_trace([N(name, name, 0, 1000), N("b", "Op", 1000, 2000, inputs=(name,))])
    answers = Answers(None, TraceContext(title=name), trace=trace)
    page = Page(page_of(answers))
    assert [attrs.get("id") for attrs, _ in page.scripts] == ["tftracer-data", "tftracer-script", None]
    assert not [tag for tag, _ in page.tags if tag == "img"]
    assert page.title.startswith(name)
    names = page.data()["nodes"]["fields"]["texts"]["name"]["texts"]
    assert names["data"].startswith(name.encode())


def test_a_style_cannot_end_its_element() -> None:
    assert html.inside_style_element("a::after { content: '</STYLE><b>' }") == "a::after { content: '<\\/STYLE><b>' }"


def test_a_package_without_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resources, "files", lambda _: tmp_path)
    html.page_script.cache_clear()
    with pytest.raises(StorageError, match="make frontend"):
        page_of(answers_of(DATA / "foreign" / "step.pb"))


def test_8009_nodes_fit_into_a_megabyte_and_a_half() -> None:
    page = page_of(answers_of(DATA / "dense500_tf2.15_cpu.pb"))
    assert len(page.encode()) < 1_500_000


# ----------------------------------------------------------------------------------------------------------------- nodes


class Nodes:
    """Reads the columns as frontend/src/client/nodes.ts does."""

    def __init__(self, answers: Answers) -> None:
        self.table: Any = node_table(answers)
        self.not_run = texts_of(self.table["not_run"])
        self.fields = columns_of(self.table["fields"])
        self.outputs = columns_of(self.table["outputs"])
        self.links = {name: [array(links["offsets"]), array(links["node"])] for name, links in self.table["links"].items()}

    def detail(self, node: int) -> dict[str, Any]:
        offsets = array(self.table["output_offsets"])
        outputs = [row(self.outputs, i) for i in range(offsets[node], offsets[node + 1])]
        links = {
            name: [self.ref(other) for other in of[offset[node] : offset[node + 1]]] for name, (offset, of) in self.links.items()
        }
        return {"node": node, **row(self.fields, node), "outputs": outputs, **links}

    def ref(self, node: int) -> dict[str, Any]:
        if node < 0:
            return {"node": -1, "name": self.not_run[-1 - node], "op": "", "device": ""}
        fields = row(self.fields, node)
        return {"node": node, **{name: fields[name] for name in ("name", "op", "device")}}


def texts_of(strings: Any) -> list[str]:
    offsets = array(strings["offsets"]).tolist()
    return [strings["data"][low:high].decode("utf-8", "replace") for low, high in zip(offsets, offsets[1:])]


def columns_of(records: Any) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for name, column in records["numbers"].items():
        columns[name] = [None if value == -(1 << 31) or value != value else value for value in array(column).tolist()]
    for name, column in records["flags"].items():
        columns[name] = [value == 1 for value in array(column).tolist()]
    for name, column in records["texts"].items():
        texts = texts_of(column["texts"])
        columns[name] = [texts[code] for code in array(column["code"]).tolist()]
    return columns


def row(columns: dict[str, list[Any]], at: int) -> dict[str, Any]:
    return {name: column[at] for name, column in columns.items()}


def assert_equal_to_node_detail(answers: Answers) -> None:
    nodes = Nodes(answers)
    chosen = np.unique(np.linspace(0, answers.trace.n - 1, 150).astype(int))
    for node in chosen.tolist():
        detail: dict[str, Any] = dict(answers.node(node))
        shown = nodes.detail(node)
        assert (detail.pop("facts"), detail.pop("hlo")) == ([], "")  # of profiles, which the page does not carry
        for name in ("share_of_type", "share_of_step"):  # of four bytes
            assert shown.pop(name) == pytest.approx(detail.pop(name), rel=1e-6)
        for each in (shown, detail):
            each["related"] = sorted(each["related"], key=lambda link: link["node"])
        assert shown == detail


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_columns_say_what_node_detail_says(path: Path) -> None:
    assert_equal_to_node_detail(answers_of(path))


def test_the_columns_of_a_gpu_step() -> None:
    nodes = [
        N("MatMul", "MatMul", 0, 2_000, GPU, NodeKind.LAUNCH),
        N("MatMul", "MatMul", 3_000, 9_000, STREAM, label="sgemm_128 regs:8"),
        N("MatMul", "MatMul", 9_000, 9_500, STREAM, label="sgemm_128 regs:8"),
        N("Relu", "Relu", 9_500, 9_900, STREAM, label="sgemm_128 regs:8"),
        N("x", "MEMCPYHtoD", 1_000, 2_000, H2D, NodeKind.COPY, label="MEMCPYHtoD 4096 bytes", bytes_moved=4096),
    ]
    assert_equal_to_node_detail(Answers(None, TraceContext(), trace=make_trace(nodes)))


def test_the_columns_of_long_lists_and_of_inputs_that_did_not_run() -> None:
    """Of a constant's thousand readers the first are listed, as node_detail does."""
    nodes = [N("const", "Const", 0, 10), N("alone", "Op", 0, 5, inputs=("gone:1", "^control", "lost"))]
    nodes += [N(f"reader{i}", "Op", 20 + i, 30 + i, inputs=("const", "const", "alone")) for i in range(1000)]
    nodes += [N("big", "Op", 5_000_000_000, 9_000_000_000)]
    assert_equal_to_node_detail(Answers(None, TraceContext(), trace=make_trace(nodes)))


def test_long_lists_are_cut_and_say_so() -> None:
    answers = answers_of(DATA / "dense500_tf2.15_cpu.pb")
    data = Page(page_of(answers)).data()
    carried = {name: msgpack.unpackb(body, raw=False) for name, body in data["answers"].items()}
    for by in ("name", "scope"):
        wanted, rows = answers.ops(by), carried[f"ops?by={by}"]["rows"]
        assert rows == wanted["rows"][: len(rows)]
        assert carried[f"ops?by={by}"]["left_out"] + len(rows) == wanted["left_out"] + len(wanted["rows"])
    path, steps = answers.critical_path(), carried["critical-path"]["steps"]
    assert steps == path["steps"][-len(steps) :]
    assert carried["critical-path"]["left_out"] + len(steps) == path["left_out"] + len(path["steps"])
    memory, tensors = answers.memory(), carried["memory"]["tensors"]
    assert tensors == memory["tensors"][: len(tensors)] and carried["memory"]["tensors_total"] == memory["tensors_total"]


def test_a_profile_s_page_carries_what_its_allocators_recorded() -> None:
    raw = gzip.decompress((DATA / "xspace" / "gpu_v100_excerpt.xplane.pb.gz").read_bytes())
    answers = Answers(raw, TraceContext())
    carried = msgpack.unpackb(Page(page_of(answers)).data()["answers"]["memory"], raw=False)
    assert carried == answers.memory(limit=len(carried["tensors"]))
    assert carried["curves"] and carried["tensors"]
