# SPDX-License-Identifier: Apache-2.0
"""Listens as a gateway does, takes every stream, and says nothing on it. Prints its address."""

import threading
from concurrent import futures

import grpc


class Silence(grpc.GenericRpcHandler):
    def service(self, handler_call_details):
        return grpc.stream_stream_rpc_method_handler(self.keep)

    @staticmethod
    def keep(_, context):
        ended = threading.Event()
        context.add_callback(ended.set)
        ended.wait()
        yield from ()


server = grpc.server(futures.ThreadPoolExecutor(8), handlers=[Silence()])
print(f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}", flush=True)
server.start()
server.wait_for_termination()
