# SPDX-License-Identifier: Apache-2.0
"""Offer Python functions as tools through a Pegboard gateway, and call tools there.

    from pegboard import serve, tool

    @tool
    def greet(name: str) -> str:
        '''Greets somebody.'''
        return f"Hello, {name}"

    serve("greetings")

`connect()` gives a client; pegboard.aio has both for asyncio.
"""

from ._call import Call
from ._client import Client, connect
from ._definitions import Definitions
from ._provider import Provider
from ._requests import Output, Result, Started, Toolset
from ._serve import make_provider, serve
from ._tool import Tool, tool
from .errors import (CallTimeout, Canceled, Conflict, LimitExceeded, NotFound, OutcomeUnknown, Overloaded,
                     PegboardError, PermissionDenied, ServiceUnavailable, ToolError, Unauthenticated, Undecided,
                     ValidationError)

__all__ = ["Call", "CallTimeout", "Canceled", "Client", "Conflict", "Definitions", "LimitExceeded", "NotFound",
           "OutcomeUnknown", "Output", "Overloaded", "PegboardError", "PermissionDenied", "Provider", "Result",
           "ServiceUnavailable", "Started", "Tool", "ToolError", "Toolset", "Unauthenticated", "Undecided",
           "ValidationError", "connect", "make_provider", "serve", "tool"]
