# SPDX-License-Identifier: Apache-2.0
"""A gateway whose answers are its arguments, one for each request; a result when there are no more. It prints its
address, and of each request the epoch that it names as JSON. The epoch that it reports is 1, 2, 3... with each answer.

    scripted.py [result | lost | result, and lost | tool error | hang | NAME OF AN ERROR]...
"""

import json
import sys
import threading
from concurrent import futures

import grpc
from pegboard._protos import message, v1

STEPS = iter(sys.argv[1:])
EPOCHS = iter(range(1, 1000))


class Registry(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        verb = handler_call_details.method.rpartition("/")[2]
        # One message of a stream is what a single answer is.
        return grpc.unary_stream_rpc_method_handler(lambda _, context: answer(verb, context),
                                                    response_serializer=lambda made: made.SerializeToString())


def answer(verb, context):
    step, epoch = next(STEPS, "result"), next(EPOCHS)  # first: when it has printed the caller may cancel
    print(json.dumps(dict(context.invocation_metadata()).get("pegboard-asked-epoch")), flush=True)
    context.send_initial_metadata([("pegboard-epoch", str(epoch))])
    if step in ("result", "result, and lost"):
        yield response(verb, result=b"1")
    elif step == "tool error":
        yield response(verb, error=v1("ToolError", code="odd", message="an odd number"))
    elif step == "hang":
        if verb == "CallToolStream":
            yield v1("CallToolStreamResponse", output={"delta": "begun\n"})
        ended = threading.Event()
        if context.add_callback(ended.set):
            ended.wait()
    elif step != "lost":
        fail(step, context)
    if "lost" in step:
        context.abort(grpc.StatusCode.UNAVAILABLE, "the connection broke")


def response(verb, **fields):
    if verb == "ListToolsets":
        return v1("ListToolsetsResponse")
    made = v1("CallToolResponse", **fields)
    return v1("CallToolStreamResponse", result=made) if verb == "CallToolStream" else made


def fail(name, context):
    """Of a call that was not started. Clients go by the name, not by the code."""
    status = message("google.rpc.Status")()
    status.details.add().Pack(message("goapb.ErrorResponse")(name=name))
    context.set_trailing_metadata([("grpc-status-details-bin", status.SerializeToString()),
                                   ("pegboard-started", "false")])
    context.abort(grpc.StatusCode.ABORTED, name)


server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[Registry()])
print(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}", flush=True)
server.start()
server.wait_for_termination()
