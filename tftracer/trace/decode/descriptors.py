"""TensorFlow's protobuf messages without TensorFlow: RunMetadata, StepStats, GraphDef and the messages in them.

The descriptors ship as ``run_metadata.binpb``, a FileDescriptorSet extracted from TensorFlow 2.21. They also fit messages of
older and newer versions, because field numbers never change meaning. The descriptors have a DescriptorPool of their own, which
cannot clash with TensorFlow's. To write the file again, run ``python tests/tf/extract_descriptors.py`` where TensorFlow is
installed.
"""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool

from tftracer.errors import UnknownError
from tftracer.trace.decode.private_messages import class_of

FILE = Path(__file__).with_name("run_metadata.binpb")

_lock = threading.Lock()


def message_class(name: str) -> Any:
    """Return the generated class of a message: ``message_class("RunMetadata")``, ``"GraphDef"``, ``"StepStats"``.

    Raises UnknownError for a message that is not in the shipped descriptors.
    """
    with _lock:
        return _message_class(name)


@functools.cache
def _message_class(name: str) -> Any:
    try:
        return class_of(_pool(), f"tensorflow.{name}")
    except KeyError:
        raise UnknownError(f"No message tensorflow.{name} in {FILE.name}; regenerate it, see {__name__}.") from None


@functools.cache
def _pool() -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in file_descriptor_set().file:
        pool.AddSerializedFile(file.SerializeToString())
    return pool


def file_descriptor_set() -> Any:
    """Return the shipped FileDescriptorSet. Session files have it in their header, serialized."""
    return descriptor_pb2.FileDescriptorSet.FromString(FILE.read_bytes())
