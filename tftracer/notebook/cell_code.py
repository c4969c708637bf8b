"""Runs a cell's code as the notebook would: in its names, its last value shown, its errors as they are."""

from __future__ import annotations

import ast
from typing import Any


def run_cell_code(shell: Any, cell: str) -> None:
    """``shell``: IPython's. Raises what the code raises.

    Not ``shell.run_cell``, which prints an error and goes on: the cell, and *Run all*, must stop. The code gets a file name that
    ``inspect`` knows, for AutoGraph reads the source of the functions that are defined in the cell.
    """
    __tracebackhide__ = True  # from the tracebacks that IPython prints
    code = "\n" + shell.transform_cell(cell)  # below the line of the magic: lines are numbered as in the cell
    name = shell.compile.cache(code, len(shell.user_ns.get("In", ())) - 1)  # the number of the cell that runs
    body = shell.transform_ast(shell.compile.ast_parse(code, filename=name)).body
    shows_value = bool(body) and isinstance(body[-1], ast.Expr)
    before, last = (body[:-1], body[-1:]) if shows_value else (body, [])
    exec(shell.compile(ast.Module(before, []), name, "exec"), shell.user_ns)
    if last:
        exec(shell.compile(ast.Interactive(last), name, "single"), shell.user_ns)
