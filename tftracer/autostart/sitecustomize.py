"""Python imports this file when it starts, in every process of the script: ``tftracer run`` puts the file's folder on PYTHONPATH.

When the script has imported TensorFlow, this file starts the tracer. It also imports the other sitecustomize that it hides, if
any. A child process may use another Python environment and any version of Python, even Python 2. This file must work in all of
them, and it prints nothing in a process without tftracer.
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
        if this is not None:  # after an import, Python looks the module up in sys.modules
            sys.modules.setdefault("sitecustomize", this)


_start()
_import_hidden_sitecustomize()
