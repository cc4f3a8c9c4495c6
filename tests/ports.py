# SPDX-License-Identifier: Apache-2.0
"""Ports for servers that have to be told theirs."""

import socket

HELD = []


def free_port():
    """One that nobody else gets while this process lives: who binds any port, or connects, is given
    another. It is bound here and not listened on, so that a server may (with SO_REUSEADDR, which
    ours and Go's set), also when it is started again."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    HELD.append(holder)
    return holder.getsockname()[1]
