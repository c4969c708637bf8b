"""Python imports this file at its start in every process of the script: ``tftracer run`` puts its folder on PYTHONPATH.

It waits for the script to import TensorFlow, then watches what the script runs. It also imports the sitecustomize that it hides.
A child process may run any Python, from another environment and of any version, even Python 2. This file must work in all of
them, and prints nothing in one that cannot be traced.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (this module imports as little as possible)


def _start():
    # type: () -> None
    if sys.version_info < (3, 9):  # noqa: UP036 (a child's Python may be older)
        return
    try:
        from tftracer.run_in_script import watch_for_tensorflow
    except ImportError:  # an environment without tftracer
        return
    try:
        watch_for_tensorflow()
    except Exception as error:
        sys.stderr.write("tftracer: this process is not traced: {}\n".format(error))  # noqa: UP032


def _import_hidden_sitecustomize():
    # type: () -> None
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]  # noqa: PTH100
    this = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        if this is not None:  # the import system expects this module there after the import
            sys.modules.setdefault("sitecustomize", this)


_start()
_import_hidden_sitecustomize()
