#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A provider of goa-ai, imitated, in a process that can be killed: it echoes. It says `ready` when it reads calls,
and on SIGTERM ends as theirs does.

    serve.py REDIS GATEWAY TOOLSET GRACE_S
"""

import signal
import sys

from interop import G1, echo

from goa.provider import Provider
from goa.redis import Pool


def main():
    redis, gateway, toolset, grace_s = sys.argv[1:]
    service = G1(gateway)
    provider = Provider(Pool(redis), toolset, echo, service.pong_of(toolset), grace_s=float(grace_s))
    signal.signal(signal.SIGTERM, lambda *_: provider.is_stopped.set())
    print("ready", flush=True)
    provider.run()
    if provider.error:
        sys.exit(f"serve.py: {provider.error!r}")


main()
