# SPDX-License-Identifier: Apache-2.0
"""An agent that has OpenTelemetry's own SDK: one span, in which it calls tools, by HTTP and by MCP.

    caller.py GATEWAY COLLECTOR        (URLs)
"""

import json
import sys
import urllib.error
import urllib.request

from opentelemetry import propagate, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

WAIT_S = 60


def post(url, body, headers):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def context():
    headers = {}
    propagate.inject(headers)
    return headers


def call(gateway, tool, arguments):
    return post(f"{gateway}/v1/toolsets/weather/tools/{tool}/calls", arguments, context())


def call_mcp(gateway, tool, arguments):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
               "params": {"name": tool, "arguments": arguments, "_meta": context()}}
    return post(f"{gateway}/mcp/weather", message, {"Accept": "application/json, text/event-stream"})


def main(gateway, collector):
    provider = TracerProvider(resource=Resource.create({"service.name": "agent"}))
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=collector + "/v1/traces")))
    with provider.get_tracer("test").start_as_current_span("agent", kind=trace.SpanKind.CLIENT):
        done = [call(gateway, "say", {}), call_mcp(gateway, "say", {}), call(gateway, "fail", {}),
                call_mcp(gateway, "fail", {}), call(gateway, "echo", {"city": 7})]
    provider.shutdown()
    print(json.dumps(done))


main(*sys.argv[1:])
