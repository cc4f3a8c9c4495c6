# SPDX-License-Identifier: Apache-2.0
"""Messages and methods of the registry for grpc.aio."""

import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(TESTS, "gateway", "promises"), TESTS]

from world import protos, v1  # noqa: E402,F401  pylint: disable=wrong-import-position,unused-import

CHANNEL = [("grpc.enable_http_proxy", 0), ("grpc.use_local_subchannel_pool", 1),
           ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.min_reconnect_backoff_ms", 5000),
           ("grpc.max_reconnect_backoff_ms", 500)]


def method(channel, verb, service="pegboard.v1.Registry"):
    return protos().method(channel, service, verb)


def error_of(error):
    """The name of an error of the registry, or "", and its trailers."""
    trailers = {key: value for key, value in error.trailing_metadata() or ()}
    if "grpc-status-details-bin" not in trailers:
        return "", trailers
    status = protos().make("google.rpc.Status")
    status.ParseFromString(trailers["grpc-status-details-bin"])
    detail = protos().make("goapb.ErrorResponse")
    detail.ParseFromString(status.details[0].value)
    return detail.name, trailers
