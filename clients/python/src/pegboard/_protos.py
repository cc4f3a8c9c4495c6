# SPDX-License-Identifier: Apache-2.0
"""The messages and methods of the registry. They come from a FileDescriptorSet that the build puts beside this file;
the pool is our own, so that another copy of the same .proto files in the process does no harm."""

from __future__ import annotations

import functools
import os
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "pegboard.v1.Registry"


@functools.cache
def _pool() -> Any:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "registry.binpb")
    with open(path, "rb") as file:
        files = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    pool = descriptor_pool.DescriptorPool()
    for one in files.file:
        pool.Add(one)
    return pool


@functools.cache
def _factory() -> Any:
    return message_factory.MessageFactory(_pool())


@functools.cache
def message(name: str) -> Any:
    """The class of a message."""
    return _class_of(_pool().FindMessageTypeByName(name))


def _class_of(descriptor: Any) -> Any:
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return _factory().GetPrototype(descriptor)  # protobuf 4.21: one factory, or classes would not fit each other


def v1(name: str, /, **fields: Any) -> Any:
    return message("pegboard.v1." + name)(**fields)


def method(channel: Any, verb: str) -> Any:
    """A method of the registry on a channel, of grpc or of grpc.aio."""
    found = _pool().FindMethodByName(f"{SERVICE}.{verb}")
    is_streamed = verb in ("Attach", "CallToolStream", "Watch")
    kind = ("stream_" if verb == "Attach" else "unary_") + ("stream" if is_streamed else "unary")
    return getattr(channel, kind)(f"/{SERVICE}/{verb}",
                                  request_serializer=message(found.input_type.full_name).SerializeToString,
                                  response_deserializer=message(found.output_type.full_name).FromString)
