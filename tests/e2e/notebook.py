"""Executes a notebook in a real Jupyter kernel with TensorFlow, and converts it to an HTML page with nbconvert."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
from e2e.rig import ROOT, TENSORFLOW
from nbclient import NotebookClient
from nbconvert import HTMLExporter

KERNEL = "training"
#: nbconvert's page loads these from the network; nothing here needs them.
NO_SCRIPTS = {"mathjax_url": "", "require_js_url": "", "jquery_url": "", "mermaid_js_url": ""}


class Notebook:
    """``cells``: name -> source. A cell that raises does not end the notebook."""

    def __init__(self, folder: Path, cells: Mapping[str, str]) -> None:
        self.folder = folder
        self._names = list(cells)
        self._notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells.values()])

    def execute(self) -> Notebook:
        install_kernel(self.folder / "jupyter")
        with mock.patch.dict(os.environ, {"JUPYTER_PATH": str(self.folder / "jupyter")}):
            resources = {"metadata": {"path": str(self.folder)}}
            NotebookClient(self._notebook, timeout=300, kernel_name=KERNEL, allow_errors=True, resources=resources).execute()
        return self

    def outputs(self, name: str) -> list[Any]:
        return self._notebook.cells[self._names.index(name)].outputs

    def html(self, name: str) -> str:
        """All HTML that a cell showed."""
        return "\n".join(output.data["text/html"] for output in self.outputs(name) if "text/html" in output.get("data", {}))

    def printed(self, name: str) -> str:
        return "".join(output.text for output in self.outputs(name) if output.output_type == "stream" and output.name == "stdout")

    def page(self, theme: str) -> Path:
        """The notebook as an HTML page, in its folder."""
        text, _ = HTMLExporter(theme=theme, **NO_SCRIPTS).from_notebook_node(self._notebook)
        path = self.folder / f"notebook-{theme}.html"
        path.write_text(text, encoding="utf-8")
        return path


def install_kernel(folder: Path) -> None:
    kernel = folder / "kernels" / KERNEL
    kernel.mkdir(parents=True)
    command = [str(TENSORFLOW), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    environment = {"PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "2"}
    content = {"argv": command, "display_name": KERNEL, "language": "python", "env": environment}
    (kernel / "kernel.json").write_text(json.dumps(content))
