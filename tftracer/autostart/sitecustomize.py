"""Python imports this at its start where ``tftracer run`` has put its folder on PYTHONPATH: so in every process of the script.

It waits for the script to import TensorFlow, then watches what it runs. Another sitecustomize that Python would have imported
instead is imported after it. A child may be any Python, of another environment and of any version, Python 2 too: this file has
to be good for all of them, and one that cannot be traced prints nothing of ours.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 (nothing that need not be is imported here)


def _start():
    # type: () -> None
    if sys.version_info < (3, 9):  # noqa: UP036 (a child's may be older)
        return
    try:
        from tftracer.run_process import watch_for_tensorflow
    except ImportError:  # an environment without tftracer
        return
    try:
        watch_for_tensorflow()
    except Exception as error:
        sys.stderr.write("tftracer: this process is not traced: {}\n".format(error))  # noqa: UP032


def _others():
    # type: () -> None
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _HERE]  # noqa: PTH100
    this = sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        if this is not None:  # Python looks for what it is importing
            sys.modules.setdefault("sitecustomize", this)


_start()
_others()
