"""Faults in the tracer, one function at a time, in a real training run: training must not notice.

    python tests/tf/faults.py [raise|garbage|hang] [page]     # all functions, one line each

Which functions a training run reaches, on the training thread below the hook and on the tracer's own threads, is found out by
watching one run. What TensorFlow itself calls (before_run and its siblings) is what must hold, and is left alone. With "page", a
browser looks on: the functions are those of the web server and of the job's page, which the writer's thread tells what happened.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

import tftracer
from tftracer import TracingServer
from tftracer.capture.hook import make_hook
from tftracer.session.live import Recorder

ENTRIES = {"begin", "after_create_session", "before_run", "after_run", "end"}
MODES = ("raise", "garbage", "hang")
STEPS = 30
#: Before this step the steps so far are counted; before that one the training stalls, and is watched.
COUNTED, STALLED = 25, 27
PAGES: list[socket.socket] = []  # that look on
#: Called after the training, before its recorder ends.
After = Callable[[Recorder], Any]


class Fault(Exception):
    """Raised on purpose."""


def train(hooks: list[Any], between: Callable[[int], None] = lambda step: None) -> list[float]:
    """The losses of a small loop; the same each time."""
    with tf.Graph().as_default():
        inputs = tf.placeholder(tf.float32, [None, 4], name="x")
        weights = tf.get_variable("w", initializer=np.full((4, 4), 0.5, np.float32))
        loss = tf.reduce_sum(tf.square(tf.matmul(inputs, weights) - 1.0), name="loss")
        train_op = tf.train.GradientDescentOptimizer(0.01).minimize(loss, tf.train.get_or_create_global_step())
        options = tf.RunOptions(timeout_in_ms=60_000)
        losses = []
        with tf.train.MonitoredSession(hooks=hooks) as session:
            for step in range(STEPS):
                between(step)
                given = {"options": options} if step % 5 == 4 else {}
                losses.append(session.run([train_op, loss], {inputs: np.full((2, 4), step / 10, np.float32)}, **given)[1])
    return losses


def traced_run(folder: str, during: Callable[[], Any] = lambda: None, after: After = lambda recorder: None) -> list[float]:
    """A run with a request, global tracing, and a step that asks for its own trace; keeps one trace, so that others make way."""
    recorder = Recorder(keep_traces=1, spool_dir=folder, slow_factor=3.0)
    try:
        during()
        started(recorder)
        hook = make_hook(recorder)
        with contextlib.suppress(Fault):  # the caller's to hear of, as a page would
            recorder.request_traces(None, 1)
        return train_under(hook, recorder, after)
    finally:
        recorder.queue.switch_off()
        for end in (recorder.engine.close, recorder.close):  # after a fault it may take its time
            threading.Thread(target=end, daemon=True).start()


def train_under(hook: Any, recorder: Recorder, after: After) -> list[float]:
    """The losses of a training with the hook, two steps of which are traced as all are, and one of which comes late."""

    def between(step: int) -> None:
        recorder.queue.requests.trace_all = recorder.queue.requests.slow_path = step in (8, 9)
        if step in (COUNTED, STALLED):
            time.sleep(0.15)

    losses = train([hook], between)
    recorder.queue.arrived.set()
    after(recorder)
    return losses


def seen_run(folder: str, during: Callable[[], Any] = lambda: None, after: After = lambda recorder: None) -> list[float]:
    """The same with a page that looks on."""
    server = TracingServer(server_port=0, spool_dir=folder, keep_traces=1, start_web_server_on_start=False)
    recorder = server.recorder
    try:
        during()
        server.start_web_server()
        with contextlib.suppress(OSError, Fault, TypeError):  # the page may be what is broken
            look_on(server)
        hook = server.hook
        return train_under(hook, recorder, after)
    finally:
        recorder.queue.switch_off()
        for end in (recorder.engine.close, server.job.stop, server.web.stop, recorder.close):
            threading.Thread(target=end, daemon=True).start()


def look_on(server: TracingServer) -> None:
    """A live page's connection; what comes stays in the socket, which goes with the server's."""
    page = socket.create_connection(("127.0.0.1", server.web.port), timeout=10)
    lines = ["GET /api/live HTTP/1.1", "Host: localhost", f"Authorization: Bearer {server.token}", "Upgrade: websocket"]
    lines += ["Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""]
    page.sendall("\r\n".join(lines).encode())
    page.recv(1)
    PAGES.append(page)
    del PAGES[:-20]


def started(recorder: Recorder) -> None:
    """As TracingServer does it."""
    try:
        recorder.start()
    except Exception:
        recorder.queue.switch_off()


def functions(page: bool = False) -> dict[CodeType, tuple[Any, str]]:
    """The package's functions by their code: (module or class, name)."""
    by_code: dict[CodeType, tuple[Any, str]] = {}
    for module in page_modules() if page else package_modules():
        for name, value in vars(module).items():
            if inspect.isfunction(value) and value.__module__ == module.__name__:
                by_code[value.__code__] = (module, name)
            elif inspect.isclass(value) and value.__module__ == module.__name__:
                by_code.update({code: (value, name) for name, code in methods(value)})
    return by_code


def methods(kind: type) -> Iterator[tuple[str, CodeType]]:
    for name, value in vars(kind).items():
        function = value.fget if isinstance(value, property) else getattr(value, "__func__", value)
        if inspect.isfunction(function) and function.__code__.co_filename != "<string>":
            yield name, function.__code__


def package_modules() -> list[Any]:
    """What runs in a training process, the web server and the job left out."""
    packages = ("capture", "session", "storage", "importers", "engine", "ledger")
    names = ["tftracer.trace.answers", *(module for package in packages for module in modules_of(package))]
    return [importlib.import_module(name) for name in names if not name.endswith("helper_main")]  # another process


def modules_of(package: str) -> list[str]:
    """Those of its folders, too."""
    path = importlib.import_module(f"tftracer.{package}").__path__
    return [module.name for module in pkgutil.walk_packages(path, f"tftracer.{package}.")]


def page_modules() -> list[Any]:
    return [importlib.import_module(name) for package in ("web", "job") for name in modules_of(package)]


def reached(page: bool = False) -> list[tuple[Any, str]]:
    """What a run calls, below the hook and on the tracer's threads."""
    by_code, seen = functions(page), set()
    flushed = threading.Event()

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code in by_code and ours(frame):
            seen.add(frame.f_code)

    def flush(recorder: Recorder) -> None:
        flushed.set() if recorder.flush() else None

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        with tempfile.TemporaryDirectory() as folder:
            (seen_run if page else traced_run)(folder, after=flush)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    assert flushed.is_set()
    called = [by_code[code] for code in list(seen)]  # a list: other threads may still add to it
    return [pair for pair in called if not (pair[1] in ENTRIES and pair[0].__name__ == "HookMethods")]


def ours(frame: FrameType) -> bool:
    if threading.current_thread().name.startswith("tftracer"):
        return True
    above: FrameType | None = frame
    while above is not None:
        if above.f_code.co_name in ENTRIES and above.f_code.co_filename == tftracer_hook_file():
            return True
        above = above.f_back
    return False


def tftracer_hook_file() -> str:
    return str(importlib.import_module("tftracer.capture.hook").__file__)


@contextmanager
def broken(owner: Any, name: str, mode: str) -> Iterator[threading.Event]:
    """The function made to fail; the event is set at its first call."""
    original = vars(owner)[name]
    called = threading.Event()

    def fail(*args: Any, **kwargs: Any) -> Any:
        first = not called.is_set()
        called.set()
        if mode == "raise":
            raise Fault(f"{owner.__name__}.{name}")
        if mode == "garbage":
            return object()
        if first:
            time.sleep(1)  # hangs
        function = original.fget if isinstance(original, property) else getattr(original, "__func__", original)
        return function(*args, **kwargs)

    wrapped: Any = fail
    if isinstance(original, (staticmethod, classmethod, property)):
        wrapped = type(original)(fail)
    places = [owner] if inspect.isclass(owner) else [m for m in sys.modules.values() if vars(m).get(name) is original]
    for place in places:
        setattr(place, name, wrapped)
    try:
        yield called
    finally:
        for place in places:
            setattr(place, name, original)


def losses_with(owner: Any, name: str, mode: str, page: bool = False) -> tuple[list[float], bool]:
    """The losses of a run in which the function fails, and whether it was called at all."""
    folder = tempfile.mkdtemp()
    context = broken(owner, name, mode)
    event: list[threading.Event] = []
    try:
        run = seen_run if page else traced_run
        losses = run(folder, lambda: event.append(context.__enter__()), lambda recorder: finish(recorder, event[0]))
    finally:
        context.__exit__(None, None, None)
        shutil.rmtree(folder, ignore_errors=True)  # what was broken may write there still
    return losses, event[0].is_set()


def finish(recorder: Recorder, called: threading.Event) -> None:
    """Waits until the broken function was called, or all that there is to do is done; 3 s where that is what is broken."""
    flushed = threading.Event()

    def flush() -> None:
        with contextlib.suppress(Exception):
            recorder.flush(3.0)
        flushed.set()

    threading.Thread(target=flush, daemon=True).start()
    while not (called.wait(0.02) or flushed.is_set()):
        pass


def main() -> None:
    tf.disable_eager_execution()
    page, modes = "page" in sys.argv[1:], [mode for mode in sys.argv[1:] if mode in MODES]
    expected, all_called = train([]), reached(page)
    wrong = 0
    for mode in modes or MODES:
        for owner, name in sorted(all_called, key=lambda pair: (pair[0].__name__, pair[1])):
            try:
                losses, called = losses_with(owner, name, mode, page)
                said = ("as without" if losses == expected else "OTHER LOSSES") + ("" if called else ", not called")
            except BaseException as error:
                said = f"LEFT THE TRACER: {error!r}"
            wrong += said.isupper() or "OTHER" in said or "LEFT" in said
            print(f"{mode:8} {owner.__name__}.{name}: {said}", flush=True)
    print(f"{len(all_called)} functions of tftracer {tftracer.__version__}, {wrong} reached the training loop")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
