/* SPDX-License-Identifier: Apache-2.0 */

/* Spans as OTLP has them (opentelemetry/proto/trace/v1/trace.proto). The numbers of fields are
 * stable there. */

#include <endian.h>

#include "base/text/str.h"
#include "otlp/internal.h"
#include "wire/pack.h"
#include "json/json.h"

enum {
    REQUEST_RESOURCE_SPANS = 1,
    RESOURCE_SPANS_RESOURCE = 1,
    RESOURCE_SPANS_SCOPE_SPANS = 2,
    RESOURCE_ATTRIBUTES = 1,
    SCOPE_SPANS_SCOPE = 1,
    SCOPE_SPANS_SPANS = 2,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,
    SPAN_TRACE_ID = 1,
    SPAN_SPAN_ID = 2,
    SPAN_PARENT_SPAN_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_STATUS = 15,
    STATUS_CODE = 3,
    STATUS_ERROR = 2,
    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE = 2,
    VALUE_STRING = 1,
};

static char *put_fixed64(char *at, unsigned field, uint64_t value)
{
    const uint64_t little = htole64(value);

    *at++ = (char)(field << 3 | 1);
    memcpy(at, &little, sizeof(little));
    return at + sizeof(little);
}

static peg_str cut_value(peg_str value)
{
    if (value.len > PEG_LIMIT_OTLP_VALUE_BYTES)
        value.len = peg__utf8_cut(value.ptr, PEG_LIMIT_OTLP_VALUE_BYTES);
    return value;
}

/* A KeyValue with a string; nothing for "". */
static char *put_attribute(char *at, unsigned field, const char *key, peg_str given)
{
    const peg_str value = cut_value(given);
    const size_t inner = wire_bytes_size(value);

    if (!value.len)
        return at;
    at = wire_put_head(at, field,
                       wire_bytes_size(peg__str(key)) + 1 + wire_varint_size(inner) + inner);
    at = wire_put_bytes(at, ATTRIBUTE_KEY, peg__str(key));
    at = wire_put_head(at, ATTRIBUTE_VALUE, inner);
    return wire_put_bytes(at, VALUE_STRING, value);
}

static char *put_name(char *at, const char *operation, peg_str target)
{
    const peg_str cut = cut_value(target);
    const peg_str first = peg__str(operation);

    at = wire_put_head(at, SPAN_NAME, first.len + 1 + cut.len);
    memcpy(at, first.ptr, first.len);
    at += first.len;
    *at++ = ' ';
    if (cut.len)
        memcpy(at, cut.ptr, cut.len);
    return at + cut.len;
}

static char *put_ids(char *at, const struct otlp_span *span)
{
    const struct otlp_context *context = &span->context;

    at = wire_put_bytes(at, SPAN_TRACE_ID,
                        peg__strn((const char *)context->trace_id, sizeof(context->trace_id)));
    at = wire_put_bytes(at, SPAN_SPAN_ID,
                        peg__strn((const char *)context->span_id, sizeof(context->span_id)));
    if (span->has_parent)
        at = wire_put_bytes(at, SPAN_PARENT_SPAN_ID,
                            peg__strn((const char *)span->parent, sizeof(span->parent)));
    return at;
}

size_t otlp__span_pack(const struct otlp_span *span, const struct otlp_end *end,
                       char ret_bytes[OTLP__SPAN_BYTES])
{
    const int64_t now_ns = otlp__now_ns();
    const int64_t ended_ns = now_ns > span->started_ns ? now_ns : span->started_ns; /* it was set */
    char inner[OTLP__SPAN_BYTES - 1 - WIRE_MAX_VARINT];
    char *at = put_ids(inner, span);

    at = put_name(at, end->operation, end->target);
    at = wire_put_number(at, SPAN_KIND, end->kind);
    at = put_fixed64(at, SPAN_START, (uint64_t)span->started_ns);
    at = put_fixed64(at, SPAN_END, (uint64_t)ended_ns);
    for (size_t i = 0; i < end->n_attributes && i < PEG_LIMIT_OTLP_ATTRIBUTES; i++)
        at = put_attribute(at, SPAN_ATTRIBUTES, end->attributes[i].key, end->attributes[i].value);
    at = put_attribute(at, SPAN_ATTRIBUTES, "error.type", end->error_type);
    if (end->error_type.len) {
        at = wire_put_head(at, SPAN_STATUS, wire_number_size(STATUS_ERROR));
        at = wire_put_number(at, STATUS_CODE, STATUS_ERROR);
    }
    return (size_t)(wire_put_bytes(ret_bytes, SCOPE_SPANS_SPANS,
                                   peg__strn(inner, (size_t)(at - inner))) -
                    ret_bytes);
}

void otlp_span_end(const struct otlp_span *span, const struct otlp_end *end)
{
    char packed[OTLP__SPAN_BYTES];

    if (span->exporter)
        otlp__exporter_add(span->exporter, peg__strn(packed, otlp__span_pack(span, end, packed)));
}

/* ---- what all spans of a request share ---- */

enum { SHARED_BYTES = 4 * (PEG_LIMIT_OTLP_VALUE_BYTES + 64) };

static peg_str pack_resource(const struct otlp_options *options, char bytes[SHARED_BYTES])
{
    char *at =
        put_attribute(bytes, RESOURCE_ATTRIBUTES, "service.name", peg__str(options->service));

    at = put_attribute(at, RESOURCE_ATTRIBUTES, "service.version", peg__str(peg_version()));
    at = put_attribute(at, RESOURCE_ATTRIBUTES, "service.instance.id",
                       peg__str(options->instance ? options->instance : ""));
    return peg__strn(bytes, (size_t)(at - bytes));
}

static peg_str pack_scope(char bytes[SHARED_BYTES])
{
    char *at = wire_put_bytes(bytes, SCOPE_NAME, peg__str("pegboard"));

    at = wire_put_bytes(at, SCOPE_VERSION, peg__str(peg_version()));
    return peg__strn(bytes, (size_t)(at - bytes));
}

void otlp__request_head(const struct otlp_options *options, size_t n, struct peg__buf *out)
{
    char resource_bytes[SHARED_BYTES];
    char scope_bytes[SHARED_BYTES];
    const peg_str resource = pack_resource(options, resource_bytes);
    const peg_str scope = pack_scope(scope_bytes);
    const size_t scope_spans = wire_bytes_size(scope) + n;
    const size_t all = wire_bytes_size(resource) + 1 + wire_varint_size(scope_spans) + scope_spans;
    char *start;
    char *at;

    peg__buf_clear(out);
    start = peg__buf_reserve(out, all - n + 1 + WIRE_MAX_VARINT);
    if (!start)
        return;
    at = wire_put_head(start, REQUEST_RESOURCE_SPANS, all);
    at = wire_put_bytes(at, RESOURCE_SPANS_RESOURCE, resource);
    at = wire_put_head(at, RESOURCE_SPANS_SCOPE_SPANS, scope_spans);
    at = wire_put_bytes(at, SCOPE_SPANS_SCOPE, scope);
    out->len = (size_t)(at - start);
}
