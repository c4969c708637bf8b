"""Sphinx directives for examples that the build runs, so that what the pages show is what happens.

``.. python::``   runs the code, and shows it with what it prints. One page is one program. With ``:notebook:`` it is a cell of a
                  notebook: the value of the last line shows itself.
``.. command::``  runs a command line, and shows it with its output. ``:exit: 4`` is the exit code that it must have.
``.. page::``     links the viewer of a file's newest trace, as one HTML file.
``.. columns::``  the columns of a table of tftracer/export/tables/schema.py.

They run in a folder of their own, in which ``training.tftrace`` and the other files of SAMPLES lie, and ``traces``, what
``tftracer export`` writes of a job of six ranks.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
from made_fleet import make_fleet  # noqa: E402

SAMPLES = {
    "training.tftrace": "tests/data/versions/2-saved.tftrace",
    "ps_worker.pb": "tests/data/ps_worker0_tf2.21_cpu.pb",
    "before.tftrace": "tests/data/versions/2-first-saved.tftrace",
    "after.tftrace": "tests/data/versions/2-saved.tftrace",
    "adam.tftrace": "tests/data/slow_to_fast_adam.tftrace",
    "adagrad.tftrace": "tests/data/slow_to_fast_adagrad.tftrace",
    "first.pb": "tests/data/ps_transfers_whole_tf2.15_cpu.pb",
    "second.pb": "tests/data/ps_worker0_tf2.21_cpu.pb",
    "job/rank0.pb": "tests/data/horovod_rank0_tf2.15_cpu.pb",
    "job/rank1.pb": "tests/data/horovod_rank1_tf2.15_cpu.pb",
}


class Example(SphinxDirective):
    has_content = True
    folder: ClassVar[str] = ""

    def here(self) -> str:
        """The folder of the samples, made for the first example."""
        if not Example.folder:
            Example.folder = tempfile.mkdtemp(prefix="docs-")
            for name, path in SAMPLES.items():
                target = Path(Example.folder) / name
                target.parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / path, target)
            make_fleet(Path(Example.folder) / "traces", "nightly-42", ranks=6, steps=4)
        return Example.folder

    def shown(self, code: str, language: str, output: str) -> list[nodes.Node]:
        given = nodes.literal_block(code, code, language=language)
        printed = nodes.literal_block(output, output, language="text")
        return [given, printed] if output else [given]


class Python(Example):
    option_spec: ClassVar[dict[str, Any]] = {"notebook": directives.flag}
    programs: ClassVar[dict[str, dict[str, Any]]] = {}

    def run(self) -> list[nodes.Node]:
        code, printed = "\n".join(self.content), io.StringIO()
        *before_last, last = ast.parse(code).body
        names = self.programs.setdefault(self.env.docname, {"__name__": "__main__"})
        before = Path.cwd()
        os.chdir(self.here())
        try:
            with contextlib.redirect_stdout(printed):
                if "notebook" not in self.options:
                    exec(compile(code, self.env.docname, "exec"), names)
                    return self.shown(code, "python", printed.getvalue().rstrip())
                assert isinstance(last, ast.Expr), "the last line of a cell is what it shows"
                exec(compile(ast.Module(before_last, []), self.env.docname, "exec"), names)
                value = eval(compile(ast.Expression(last.value), self.env.docname, "eval"), names)
                return [
                    *self.shown(code, "python", printed.getvalue().rstrip()),
                    nodes.raw("", value._repr_html_(), format="html"),
                ]
        finally:
            os.chdir(before)


class Command(Example):
    option_spec: ClassVar[dict[str, Any]] = {"exit": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        line = "\n".join(self.content)
        tftracer = f'tftracer() {{ "{sys.executable}" -m tftracer "$@"; }}\n'
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            ["bash", "-c", tftracer + line], capture_output=True, text=True, cwd=self.here(), env=environment, check=False
        )
        if done.returncode != self.options.get("exit", 0):
            raise self.error(f"exit code {done.returncode}: {line}\n{done.stdout}{done.stderr}")
        return self.shown(line, "bash", (done.stdout + done.stderr).rstrip())


class Page(SphinxDirective):
    """``.. page:: NAME FILE``: a link to the viewer of the file's newest trace, written as gallery/NAME.html beside the pages."""

    has_content = True
    required_arguments = 2

    def run(self) -> list[nodes.Node]:
        import tftracer

        name, file = self.arguments
        target = Path(self.env.app.outdir) / "gallery" / f"{name}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        with tftracer.open(ROOT / file) as session:
            trace = session.trace()
            trace.save(target)
            target.chmod(0o644)  # as the other pages
            link = nodes.reference(trace.title, trace.title, refuri=f"gallery/{name}.html", internal=False)
            says = [nodes.list_item("", nodes.paragraph(text, text)) for text in trace.sentences()[:2]]
        return [nodes.paragraph("", "", link), *self.parse_text_to_nodes("\n".join(self.content)), nodes.bullet_list("", *says)]


class Columns(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        from tftracer.export.tables.schema import SCRIPT_TABLES

        rows = [(field.name, field.type, field.about + (" (may be unknown)" if field.unknown else ""))
                for field in SCRIPT_TABLES[self.arguments[0]]]  # fmt: skip
        text = [".. list-table::", "   :widths: 24 8 68", ""]
        text += [line for name, type_, about in rows for line in (f"   * - ``{name}``", f"     - {type_}", f"     - {about}")]
        return self.parse_text_to_nodes("\n".join(text))


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("python", Python)
    app.add_directive("command", Command)
    app.add_directive("columns", Columns)
    app.add_directive("page", Page)
    return {"parallel_read_safe": False}
