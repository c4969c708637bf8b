"""``server.callback``: tells the epoch, which is noted on the traces of its steps.

Keras's steps are seen without it (functions/calls.py, keras_steps.py). It has no methods for batches: as soon as one callback has
one, Keras 3 waits for all callbacks at each batch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tftracer.capture.hook import tensorflow


def make_callback(tell: Callable[[str], None]) -> Any:
    """A Keras callback, of the Keras that this TensorFlow brings. ``tell`` gets "epoch 3", and "" when no epoch is under way."""

    class TracingCallback(tensorflow().keras.callbacks.Callback):  # type: ignore[misc]
        """Give it to ``fit(callbacks=[...])``."""

        async_safe = True

        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            with contextlib.suppress(Exception):
                tell(f"epoch {epoch + 1}")

        def on_train_end(self, logs: Any = None) -> None:
            with contextlib.suppress(Exception):
                tell("")

    return TracingCallback()
