# SPDX-License-Identifier: Apache-2.0
"""Spans as JSON, one a line: what opentelemetry-proto makes of the bodies of requests.

    decode.py FILE...
"""

import json
import sys

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


def texts(attributes):
    return {attribute.key: attribute.value.string_value for attribute in attributes}


def show(span, resource, scope):
    return {
        "trace": span.trace_id.hex(), "id": span.span_id.hex(), "parent": span.parent_span_id.hex(), "name": span.name,
        "kind": Span.SpanKind.Name(span.kind), "start": span.start_time_unix_nano, "end": span.end_time_unix_nano,
        "attributes": texts(span.attributes), "status": Status.StatusCode.Name(span.status.code),
        "resource": texts(resource.attributes), "scope": scope.name,
    }


for path in sys.argv[1:]:
    with open(path, "rb") as file:
        request = ExportTraceServiceRequest.FromString(file.read())
    for of_resource in request.resource_spans:
        for of_scope in of_resource.scope_spans:
            for one in of_scope.spans:
                print(json.dumps(show(one, of_resource.resource, of_scope.scope)))
