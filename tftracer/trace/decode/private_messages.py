"""Creates protobuf message classes from a table of fields, in a pool of their own, which cannot clash with TensorFlow's.

A table has only the fields that are read; other fields are skipped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Union

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
INT, UINT, REAL, BYTES = _FIELD.TYPE_INT64, _FIELD.TYPE_UINT64, _FIELD.TYPE_DOUBLE, _FIELD.TYPE_BYTES
#: message -> its fields: (name, number, type or message, repeated). A map is a list of entries, as on the wire.
Schema = Mapping[str, Sequence[tuple[str, int, Union[int, str], bool]]]


def message_classes(package: str, schema: Schema) -> dict[str, Any]:
    """Create the class of each message of the table."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    for name, message_fields in schema.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind, repeated in message_fields:
            label = _FIELD.LABEL_REPEATED if repeated else _FIELD.LABEL_OPTIONAL
            added = message.field.add(name=field_name, number=number, label=label)
            if isinstance(kind, str):
                added.type, added.type_name = _FIELD.TYPE_MESSAGE, f".{package}.{kind}"
            else:
                added.type = kind  # type: ignore[assignment]
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {name: class_of(pool, f"{package}.{name}") for name in schema}


def class_of(pool: Any, name: str) -> Any:
    """Return the class of a message of a pool. Raises KeyError if the pool has no such message."""
    descriptor = pool.FindMessageTypeByName(name)
    factory: Any = message_factory
    if hasattr(factory, "GetMessageClass"):
        return factory.GetMessageClass(descriptor)
    return factory.MessageFactory(pool).GetPrototype(descriptor)  # protobuf 3.20
