#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Calls a tool: its result goes to standard output, what it says meanwhile and what is wrong to standard error.

    python3 call.py ADDRESS TOOLSET TOOL ARGUMENTS
"""

import os
import sys

import needs  # noqa: F401  says what is missing
import grpc
from goapb import goa_pb2
from google.rpc import status_pb2
from pegboard.v1 import registry_pb2 as pb

DEADLINE_S = 30


def name_of(error):
    """Of an error of the gateway, such as validation_error."""
    trailers = dict(error.trailing_metadata() or ())
    for detail in status_pb2.Status.FromString(trailers.get("grpc-status-details-bin", b"")).details:
        return goa_pb2.ErrorResponse.FromString(detail.value).name
    return error.code().name.lower()


def call(channel, request, metadata):
    method = channel.unary_stream("/pegboard.v1.Registry/CallToolStream",
                                  request_serializer=pb.CallToolRequest.SerializeToString,
                                  response_deserializer=pb.CallToolStreamResponse.FromString)
    for event in method(request, timeout=DEADLINE_S, metadata=metadata):
        if event.HasField("output"):
            sys.stderr.write(event.output.delta)
        elif event.HasField("result"):
            return event.result
    raise AssertionError("a stream without a result ends with an error")


def main():
    if len(sys.argv) != 5:
        sys.exit("usage: python3 call.py ADDRESS TOOLSET TOOL ARGUMENTS")
    address, toolset, tool, arguments = sys.argv[1:]
    token = os.environ.get("PEGBOARD_TOKEN")
    request = pb.CallToolRequest(toolset=toolset, tool=tool, payload=arguments.encode())
    with grpc.insecure_channel(address, [("grpc.max_receive_message_length", 16 << 20)]) as channel:
        try:
            answer = call(channel, request, [("authorization", "Bearer " + token)] if token else [])
        except grpc.RpcError as error:  # the gateway's: the tool did not run, or nobody knows how it ended
            sys.exit(f"{name_of(error)}: {error.details()}")
    if answer.HasField("error"):  # the tool ran and failed
        sys.exit(f"{answer.error.code}: {answer.error.message}")
    print(answer.result.decode())


if __name__ == "__main__":
    main()
