# SPDX-License-Identifier: Apache-2.0
"""Where the gateway is, and what we show it: arguments, or else the variables that `pegboard` reads, too."""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Sequence, Union

import grpc

Addresses = Union[str, Sequence[str], None]
OPTIONS = [("grpc.keepalive_time_ms", 20000), ("grpc.keepalive_timeout_ms", 10000),
           ("grpc.http2.max_pings_without_data", 0), ("grpc.max_receive_message_length", 16 << 20),
           ("grpc.initial_reconnect_backoff_ms", 500), ("grpc.max_reconnect_backoff_ms", 2000),
           ("grpc.use_local_subchannel_pool", 1)]  # a new channel connects anew
DEFAULT = "127.0.0.1:9090"


@dataclass
class Link:
    addresses: list[str]
    metadata: list[tuple[str, str]]
    credentials: Any = None  # None: without TLS
    epoch: str = ""  # of what the registry remembers of calls, as last reported; "": not known
    # The epochs of calls whose end is not known, by their identity. Threads share it without a lock, one method at a
    # time: a stream that is collected as garbage ends here, too, perhaps on the thread that would hold the lock.
    asked: OrderedDict[tuple[str, ...], str] = field(default_factory=OrderedDict)

    def channel(self, address: str, module: Any = grpc) -> Any:
        """`module` is grpc or grpc.aio."""
        if self.credentials:
            return module.secure_channel(address, self.credentials, OPTIONS)
        return module.insecure_channel(address, OPTIONS)


def make_link(registry: Addresses, token: str | None, tls_ca: str | None, tls_cert: str | None,
              tls_key: str | None) -> Link:
    token = token or os.environ.get("PEGBOARD_TOKEN")
    if registry is None or registry == "":
        registry = os.environ.get("PEGBOARD_REGISTRY") or DEFAULT
    listed = registry.split(",") if isinstance(registry, str) else list(registry)
    return Link([_with_port(address.strip()) for address in listed],
                [("authorization", "Bearer " + token)] if token else [],
                _credentials(tls_ca or os.environ.get("PEGBOARD_TLS_CA"),
                             tls_cert or os.environ.get("PEGBOARD_TLS_CERT"),
                             tls_key or os.environ.get("PEGBOARD_TLS_KEY")))


def _with_port(address: str) -> str:
    if not address:
        raise ValueError("an address of the registry is empty")
    if address.startswith("unix:") or (address.rpartition(":")[2].isdigit() and not address.endswith("]")):
        return address
    return address + ":9090"


def _credentials(ca: str | None, cert: str | None, key: str | None) -> Any:
    if not ca and not cert:
        return None
    return grpc.ssl_channel_credentials(_read(ca), _read(key), _read(cert))


def _read(path: str | None) -> bytes | None:
    if not path:
        return None
    with open(path, "rb") as file:
        return file.read()
