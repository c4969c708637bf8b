"""Sessions, traces, comparisons and ``%%trace`` in a real Jupyter kernel, and what a browser makes of the notebook.

One notebook is executed for all tests.
"""

from __future__ import annotations

import re
import shutil

import pytest
from e2e.gallery import DATA, write_session
from e2e.notebook import Notebook
from e2e.rig import PICTURES, picture
from e2e.test_hostile_names import IMAGE, SCRIPT, hostile_trace
from playwright.sync_api import FrameLocator, Page, expect

CELLS = {
    "session": "import tftracer\nsession = tftracer.open('training.tftrace')\nsession",
    "trace": "session.trace(3)",
    "comparison": "tftracer.open('before.tftrace').compare(session)",
    "viewer": "session.view(height=500)",
    "large": "tftracer.open('dense.pb').view()",
    "hostile": "hostile = tftracer.open('hostile.tftrace')\nhostile",
    "hostile viewer": "hostile.view(height=300)",
    "broken": "tftracer.open('broken.tftrace').trace()",
    "broken viewer": "tftracer.open('broken.tftrace').view()",
    "load": "%load_ext tftracer\nimport sys\nprint('tensorflow' in sys.modules)",
    "function": """%%trace kept
import tensorflow as tf

@tf.function
def train(x):
    if tf.reduce_sum(x) > 0.0:  # AutoGraph reads the source of the cell
        x = 2.0 * x
    return tf.matmul(x, x)

for _ in range(8):
    result = train(tf.ones((64, 64)))
float(result[0, 0])""",
    "afterwards": """import threading
from tensorflow.python.client.session import BaseSession
from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function
print(kept.record["step"], kept.title, len(kept.sentences()))
print([method for method in (BaseSession.run, Function.__call__) if "tftracer" in method.__code__.co_filename])
print([thread.name for thread in threading.enumerate() if thread.name.startswith("tftracer")])""",
    "long": """from tftracer.notebook.cell_recording import CellRecording
recording = CellRecording(all_s=0.0)  # as if its first seconds were over
def trained():
    train(tf.ones((64, 64)))
    return [(run["steps"], len(run["traces"])) for run in recording.recorder.runs()]
while not any(traces >= 3 and steps >= traces + 3 for steps, traces in trained()):
    pass
(run,) = recording.finish().runs
print(len(run.traces) >= 3, run.steps > len(run.traces), run.traces[-1]["step"] > 3)""",
    "graph": """%%trace --slowest --height 300
graph = tf.Graph()
with graph.as_default():
    weights = tf.compat.v1.get_variable("weights", (300, 300))
    product = tf.matmul(weights, weights, name="product")
    start = tf.compat.v1.global_variables_initializer()
session = tf.compat.v1.Session(graph=graph)
session.run(start)
for _ in range(50):
    session.run(product)""",
    "same session": "%%trace\nsession.run(product)",
    "raises": "%%trace\nsession.run(product)\nraise ValueError('of the cell')",
    "no step": "%%trace nothing\nsum(range(10))",
    "nothing": "print(nothing)",
    "wrong": "%%trace --no-such-option\nprint('ran')",
    "server": "server = tftracer.hook_inject(server_port=0)\nurl = server.url",
    "with server": "%%trace served\nfor _ in range(3):\n    train(tf.ones((64, 64)))",
    "still served": """train(tf.ones((64, 64)))
assert server.recorder.flush()
runs = tftracer.open(url).runs()
print(server.url == url, server.recorder.session()["trace_all"], served.title)
print(list(zip(runs["title"], runs["steps"].tolist(), runs["traces"].tolist())))
server.close()""",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Notebook:
    folder = tmp_path_factory.mktemp("notebook")
    shutil.copy(DATA / "versions/2-saved.tftrace", folder / "training.tftrace")
    shutil.copy(DATA / "versions/2-first-saved.tftrace", folder / "before.tftrace")
    shutil.copy(DATA / "dense500_tf2.15_cpu.pb", folder / "dense.pb")
    write_session(folder, "hostile.tftrace", {20: hostile_trace()}, fetches=[IMAGE], host=SCRIPT, command=IMAGE)
    write_session(folder, "broken.tftrace", {20: b"\xff\xff\xff"})
    return Notebook(folder, CELLS).execute()


def test_a_session_shows_its_runs_and_the_newest_verdict(notebook: Notebook) -> None:
    shown = notebook.html("session")
    assert "GradientDescent, loss (feeding x)" in shown and "TensorFlow 2.21.0" in shown
    assert "The newest trace" in shown and "<li" in shown and "<script" not in shown


def test_a_trace_shows_its_verdict_and_its_ops(notebook: Notebook) -> None:
    shown = notebook.html("trace")
    assert "<li" in shown and "op type" in shown and "MatMul" in shown


def test_a_comparison_shows_what_differs_and_what_it_cannot_tell(notebook: Notebook) -> None:
    shown = notebook.html("comparison")
    assert "Step time:" in shown and "too few sessions to tell" in shown and "With one session a side" in shown


def test_a_damaged_trace_says_so(notebook: Notebook) -> None:
    for cell in ("broken", "broken viewer"):
        assert "This trace cannot be read" in notebook.html(cell)
        assert "<iframe" not in notebook.html(cell)


def test_a_cell_is_traced_and_nothing_stays_behind(notebook: Notebook) -> None:
    assert notebook.printed("load") == "False\n", "loading the extension imported TensorFlow"
    (result,) = [output for output in notebook.outputs("function") if output.output_type == "execute_result"]
    assert result.data["text/plain"] == "256.0"
    assert "The job ended without closing this file" not in notebook.html("function")
    assert "train (64,64), step 8" in notebook.html("function") and "MatMul" in notebook.html("function")
    kept, wrapped, threads = notebook.printed("afterwards").splitlines()
    assert re.fullmatch(r"8 train \(64,64\), step 8 [1-9]", kept)
    assert (wrapped, threads) == ("[]", "[]")


def test_later_steps_of_a_long_cell_are_traced_now_and_then(notebook: Notebook) -> None:
    assert notebook.printed("long") == "True True True\n", notebook.outputs("long")


def test_a_cell_with_a_session(notebook: Notebook) -> None:
    shown = notebook.html("graph")
    assert "product" in shown and ">50<" in shown and "<iframe" in shown
    assert "product, step 1" in notebook.html("same session"), "the session of an earlier cell"


def test_a_cell_that_raises_raises(notebook: Notebook) -> None:
    (error,) = [output for output in notebook.outputs("raises") if output.output_type == "error"]
    assert (error.ename, error.evalue) == ("ValueError", "of the cell")
    assert "magic.py" not in "".join(error.traceback)
    assert "<iframe" in notebook.html("raises"), "the step before the error is shown"
    wrong = notebook.outputs("wrong")
    assert "unrecognized arguments: --no-such-option" in str(wrong) and "ran" not in notebook.printed("wrong")


def test_a_cell_without_a_step_says_so(notebook: Notebook) -> None:
    assert "No TensorFlow step ran in this cell" in notebook.html("no step")
    assert notebook.printed("nothing") == "None\n"


def test_a_server_that_runs_is_used_and_goes_on(notebook: Notebook) -> None:
    assert "<iframe" in notebook.html("with server") and ">3<" in notebook.html("with server")
    state, runs = notebook.printed("still served").splitlines()
    assert state == "True False train (64,64), step 3"
    assert runs == "[('train (64,64)', 4, 3)]"


# ------------------------------------------------------------------------------------------------------------ the browser


def drawn(page: Page, iframe: str) -> FrameLocator:
    """A viewer that has drawn its timeline. Browsers run no animation frames in a frame that is out of sight."""
    page.locator(iframe).scroll_into_view_if_needed()
    inside = page.frame_locator(iframe)
    expect(inside.locator("canvas[data-painted]")).to_be_visible()
    return inside


def test_the_viewer_draws_in_its_frame_and_reaches_nobody(notebook: Notebook, page: Page) -> None:
    page.goto(notebook.page("light").as_uri())
    inside = drawn(page, 'iframe[title="y (feeding x), step 6"]')
    reached = "() => { try { return [self.origin, String(parent.document)] } catch (error) { return [self.origin, error.name] } }"
    assert inside.locator("body").evaluate(reached) == ["null", "SecurityError"]
    picture(page, "notebook")


def test_a_large_page_is_a_file_beside_the_notebook(notebook: Notebook, page: Page) -> None:
    shown = notebook.html("large")
    (file,) = notebook.folder.glob("tftracer-*.html")
    assert file.stat().st_size > 1_000_000 and f'src="{file.name}"' in shown and str(file) in shown
    assert len(shown) < 2000
    page.goto(notebook.page("light").as_uri())
    drawn(page, f'iframe[src="{file.name}"]')


def test_hostile_names_are_text(notebook: Notebook, page: Page) -> None:
    page.goto(notebook.page("dark").as_uri())
    expect(page.get_by_text(IMAGE).first).to_be_visible()
    assert page.locator("img, svg[onload], b").filter(has=page.locator("xpath=self::*[@onerror or @onload]")).count() == 0
    drawn(page, "iframe[title*='onerror']")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_have_the_colours_of_the_theme(notebook: Notebook, page: Page, theme: str) -> None:
    page.goto(notebook.page(theme).as_uri())
    lightness = "e => { const [r, g, b] = getComputedStyle(e).color.match(/[0-9.]+/g); return (+r + +g + +b) / 3 }"
    for element in page.locator(".tex2jax_ignore").locator("td, th, li, div").all():
        assert (element.evaluate(lightness) > 200) == (theme == "dark")
        assert element.evaluate("e => getComputedStyle(e).backgroundColor") == "rgba(0, 0, 0, 0)"
    picture(page, f"notebook-{theme}")


def test_a_traced_cell_as_the_docs_show_it(notebook: Notebook, page: Page) -> None:
    page.goto(notebook.page("light").as_uri())
    cell = page.locator(".jp-Cell", has=page.get_by_text("%%trace kept"))
    drawn(page, 'iframe[title="train (64,64), step 8"]')
    PICTURES.mkdir(parents=True, exist_ok=True)
    cell.screenshot(path=PICTURES / "notebook-cell.png", animations="disabled")
