"""TensorFlow's protobuf messages without TensorFlow: RunMetadata, StepStats, GraphDef and the messages in them.

The descriptors ship as ``run_metadata.binpb``, a FileDescriptorSet extracted from TensorFlow 2.21. They also fit messages of
older and newer versions, because field numbers never change meaning. The descriptors have a DescriptorPool of their own, which
cannot clash with TensorFlow's. To write the file again, run ``python -m tftracer.trace.decode.descriptors`` where TensorFlow is
installed.
"""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool

from tftracer.errors import MissingTensorFlowError, UnknownError
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


def extract() -> bytes:
    """Serialize the FileDescriptorSet of RunMetadata and its dependencies, dependencies first, from the installed TensorFlow.

    Raises MissingTensorFlowError if TensorFlow cannot be imported.
    """
    try:
        import tensorflow  # noqa: F401  (registers the descriptors)
        from tensorflow.core.protobuf import config_pb2
    except ImportError as error:
        raise MissingTensorFlowError(
            f"The descriptors are taken from TensorFlow, which cannot be imported here ({error}). Install tensorflow-cpu."
        ) from error
    files: dict[str, Any] = {}
    _collect(config_pb2.RunMetadata.DESCRIPTOR.file, files)
    return bytes(descriptor_pb2.FileDescriptorSet(file=files.values()).SerializeToString())


def _collect(file: Any, files: dict[str, Any]) -> None:
    """Add a file to ``files``, after its dependencies."""
    if file.name in files:
        return
    for dependency in file.dependencies:
        _collect(dependency, files)
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    files[file.name] = proto


if __name__ == "__main__":
    FILE.write_bytes(extract())
