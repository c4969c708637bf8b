"""``%%trace``: runs a cell, and shows the trace of one of its steps."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tftracer.display import markup
from tftracer.display.iframe import HEIGHT
from tftracer.notebook.cell_recording import CellRecording, CellRun, Recorded

if TYPE_CHECKING:
    from tftracer.scripting.trace import SessionTrace


NO_STEP = (
    "No TensorFlow step ran in this cell: no session.run, no call of a tf.function, no batch of a Keras model. Eager code has no "
    "steps: put the code of a step into a tf.function."
)
_SHOWN_RUNS = 8


def load_ipython_extension(shell: Any) -> None:
    """Register the magic; ``%load_ext tftracer`` calls this."""
    shell.register_magic_function(TraceMagic(shell).trace, magic_kind="cell", magic_name="trace")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        from IPython.core.error import UsageError

        raise UsageError(f"%%trace: {message}\n{self.format_usage()}")


def parser() -> argparse.ArgumentParser:
    syntax = _Parser(prog="%%trace", add_help=False, description="Trace a step of this cell.")
    syntax.add_argument("name", nargs="?", default="", help="a variable for the trace")
    syntax.add_argument("--slowest", action="store_true", help="show the slowest traced step, not the last one")
    syntax.add_argument("--height", type=int, default=HEIGHT, help="height of the viewer, in pixels")
    return syntax


class TraceMagic:
    """The magic. ``shell``: IPython's shell."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def trace(self, line: str, cell: str) -> None:
        """%%trace [NAME] [--slowest] [--height PIXELS]

        Runs the cell. Of the run (a session.run, a compiled function) that took the most time, shows the trace of the last traced
        step. NAME: a variable that gets the trace. --slowest: show the slowest traced step of that run instead. Every step of the
        cell's first 10 seconds is traced, later steps only from time to time. Tracing makes a step longer.
        """
        __tracebackhide__ = True  # hides this frame in the tracebacks that IPython prints
        options = parser().parse_args(line.split())
        recording = CellRecording()
        try:
            run_cell_code(self._shell, cell)
        finally:
            self._show(recording.finish(), options)

    def _show(self, recorded: Recorded, options: argparse.Namespace) -> None:
        """Show the trace. Never raises, because an exception of the cell may be active."""
        from IPython.display import HTML, display

        try:
            trace = recorded.selected_trace(options.slowest)
            if options.name:
                self._shell.user_ns[options.name] = trace
            display(HTML(summary(recorded, trace)))
            if trace is not None:
                display(trace.view(options.height))
        except Exception as error:
            display(HTML(markup.block("%%trace", markup.paragraph(f"The trace cannot be shown: {error}"))))


def summary(recorded: Recorded, trace: SessionTrace | None) -> str:
    """Return HTML about the cell's runs and the shown trace, or why there is no trace."""
    problems = [markup.note(f"Note: {problem}") for problem in recorded.problems]
    if trace is None:
        return markup.block("%%trace", markup.paragraph(_why_no_trace(recorded)), _runs(recorded.runs), *problems)
    return markup.block(trace.title, _runs(recorded.runs), *trace.parts(), *problems)


def _why_no_trace(recorded: Recorded) -> str:
    steps = sum(run.steps for run in recorded.runs)
    if steps:
        return f"{steps:,} steps ran in this cell, and none of them has a trace."
    return "" if recorded.problems else NO_STEP


def _runs(runs: Sequence[CellRun]) -> str:
    rows = [(run.run["title"], f"{run.steps:,}", f"{len(run.traces):,}") for run in runs[:_SHOWN_RUNS]]
    more = markup.note(f"{len(runs) - _SHOWN_RUNS:,} more runs") if len(runs) > _SHOWN_RUNS else ""
    return markup.table(("run", " steps in this cell", " kept traces"), rows) + more


def run_cell_code(shell: Any, cell: str) -> None:
    """Run a cell. Raises what its code raises.

    ``shell.run_cell`` would print an error and continue, but the cell and *Run all* must stop. The code gets a file name that
    ``inspect`` knows, because AutoGraph reads the source of functions that are defined in the cell.
    """
    __tracebackhide__ = True  # hides this frame in the tracebacks that IPython prints
    code = "\n" + shell.transform_cell(cell)  # keeps the line numbers of the cell, whose first line is the magic
    name = shell.compile.cache(code, len(shell.user_ns.get("In", ())) - 1)  # the number of the current cell
    body = shell.transform_ast(shell.compile.ast_parse(code, filename=name)).body
    shows_value = bool(body) and isinstance(body[-1], ast.Expr)
    before, last = (body[:-1], body[-1:]) if shows_value else (body, [])
    exec(shell.compile(ast.Module(before, []), name, "exec"), shell.user_ns)
    if last:
        exec(shell.compile(ast.Interactive(last), name, "single"), shell.user_ns)
