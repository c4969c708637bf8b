"""Writes ``tftracer/trace/decode/run_metadata.binpb`` again, from the installed TensorFlow."""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2

from tftracer.trace.decode.descriptors import FILE


def extract() -> bytes:
    """Serialize the FileDescriptorSet of RunMetadata and its dependencies, dependencies first."""
    import tensorflow  # noqa: F401  (registers the descriptors)
    from tensorflow.core.protobuf import config_pb2

    files: dict[str, Any] = {}
    _collect(config_pb2.RunMetadata.DESCRIPTOR.file, files)
    return bytes(descriptor_pb2.FileDescriptorSet(file=files.values()).SerializeToString())


def _collect(file: Any, files: dict[str, Any]) -> None:
    if file.name in files:
        return
    for dependency in file.dependencies:
        _collect(dependency, files)
    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    files[file.name] = proto


if __name__ == "__main__":
    FILE.write_bytes(extract())
