# SPDX-License-Identifier: Apache-2.0
"""A client of a registry that waits. pegboard.aio has the one that does not; keep them alike."""

from __future__ import annotations

from typing import Any, Iterator, Mapping, Sequence

import grpc

from . import _requests as requests
from ._definitions import Definitions
from ._link import Addresses, Link, make_link
from ._protos import method, v1
from ._requests import TIMEOUT_S, Arguments, Output, Reply, Result, Started, Toolset


def connect(registry: Addresses = None, *, token: str | None = None, tls_ca: str | None = None,
            tls_cert: str | None = None, tls_key: str | None = None) -> Client:
    """A client of the gateway at `registry` [PEGBOARD_REGISTRY, or 127.0.0.1:9090]; of several, the first that can be
    reached. It connects when it is first used."""
    return Client(make_link(registry, token, tls_ca, tls_cert, tls_key))


class Client:
    """May be used by several threads. Every method may raise a PegboardError."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._channels = [link.channel(address) for address in link.addresses]

    def close(self) -> None:
        for channel in self._channels:
            channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- calls ----

    def call(self, toolset: str, tool: str, arguments: Arguments = None, *, timeout: float | None = TIMEOUT_S,
             idempotency_key: str | None = None, metadata: Mapping[str, str] | None = None) -> Any:
        """The result of a tool. `timeout` None: the tool's own. With an `idempotency_key` asking again is attaching to
        what was started; when a connection breaks the client does so itself. ToolError: the tool ran and failed."""
        request = requests.call_request(toolset, tool, arguments, timeout, idempotency_key, metadata)
        return requests.value_of(self._ask("CallTool", request, requests.deadline_of(timeout)))

    def stream(self, toolset: str, tool: str, arguments: Arguments = None, *, timeout: float | None = TIMEOUT_S,
               idempotency_key: str | None = None,
               metadata: Mapping[str, str] | None = None) -> Iterator[Started | Output | Result]:
        """The same, with what the tool says meanwhile. The call is canceled when the iterator is closed."""
        request = requests.call_request(toolset, tool, arguments, timeout, idempotency_key, metadata)
        attempts = requests.Attempts(self._link, "CallToolStream", request, requests.deadline_of(timeout))
        for channel in attempts.each(self._channels):
            responses = method(channel, "CallToolStream")(request, timeout=attempts.time_left(),
                                                          metadata=attempts.metadata())
            try:
                attempts.note(responses.initial_metadata())
                for event in map(attempts.event_of, responses):
                    if event:
                        yield event
                    if isinstance(event, Result):
                        return
                return
            except grpc.RpcError as error:
                attempts.failed(error)
            finally:
                attempts.keep_epoch()
                responses.cancel()

    def reply(self, request: Any, timeout: float | None) -> Reply:
        """For pegboard.typed: what comes of a CallToolRequest, with its server-data."""
        return requests.reply_of(self._ask("CallTool", request, requests.deadline_of(timeout)))

    def start(self, toolset: str, tool: str, arguments: Arguments = None, *, timeout: float | None = None,
              idempotency_key: str | None = None, metadata: Mapping[str, str] | None = None) -> str:
        """For long calls: its id, for wait()."""
        request = requests.call_request(toolset, tool, arguments, timeout, idempotency_key, metadata)
        return str(self._ask("StartTool", request).call_id)

    def wait(self, call_id: str, *, timeout: float = TIMEOUT_S) -> Any:
        """The result of a call that was started. CallTimeout: it goes on."""
        request = v1("AwaitToolRequest", call_id=call_id, timeout_ms=int(1000 * timeout))
        return requests.value_of(self._ask("AwaitTool", request, requests.deadline_of(timeout)))

    def cancel(self, call_id: str) -> None:
        self._ask("CancelTool", v1("CancelToolRequest", call_id=call_id))

    # ---- the catalog ----

    def toolsets(self, tags: Sequence[str] = ()) -> list[Toolset]:
        """Those that have all of the tags, by name."""
        found: list[Toolset] = []
        token = ""
        while True:
            page = self._ask("ListToolsets", v1("ListToolsetsRequest", tags=list(tags), page_token=token))
            found += [requests.toolset_of(info) for info in page.toolsets]
            token = page.next_page_token
            if not token:
                return found

    def search(self, query: str, limit: int = 10) -> list[Toolset]:
        """Best first."""
        hits = self._ask("Search", v1("SearchRequest", query=query, limit=limit)).hits
        return [requests.toolset_of(hit.toolset) for hit in hits]

    def tools(self, vendor: str, toolsets: Sequence[str] | None = None) -> Definitions:
        """Definitions of tools, of all toolsets if none are listed, for "openai", "openai-responses", "anthropic" or
        "gemini"."""
        names = [toolset.name for toolset in self.toolsets()] if toolsets is None else toolsets
        return Definitions(vendor, [self._ask("GetToolset", v1("GetToolsetRequest", name=name)) for name in names])

    def call_definition(self, definitions: Definitions, name: str, arguments: Arguments = None, *,
                        timeout: float | None = TIMEOUT_S, idempotency_key: str | None = None) -> Any:
        """The result of the tool that a model has called by its name in the definitions."""
        toolset, tool = definitions.resolve(name)
        return self.call(toolset, tool, arguments, timeout=timeout, idempotency_key=idempotency_key)

    def _ask(self, verb: str, request: Any, timeout: float | None = TIMEOUT_S) -> Any:
        attempts = requests.Attempts(self._link, verb, request, timeout)
        for channel in attempts.each(self._channels):
            try:
                response, call = method(channel, verb).with_call(request, timeout=attempts.time_left(),
                                                                 metadata=attempts.metadata())
                attempts.note(call.initial_metadata())
                attempts.done()
                return response
            except grpc.RpcError as error:
                attempts.failed(error)
            finally:
                attempts.keep_epoch()
        raise AssertionError("there is an address")
