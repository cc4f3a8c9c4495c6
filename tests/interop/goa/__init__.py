# SPDX-License-Identifier: Apache-2.0
"""The peers of goa-ai, imitated command by command from what was captured of them: its provider loop (Serve), its
agent (the executor) and its registry, of three generations. Each file is one of their parts:

    redis     connections as their client library makes them: a pool, and one for each subscription
    maps      replicated maps: a hash, a channel, and scripts that change both
    sink      consumer groups with their keep-alive and their sweeps
    messages  what is in the entries of streams
    provider  Serve
    agent     the executor
    registry  the registry itself, to try the others without a gateway

Nothing here knows Pegboard.
"""
