/* SPDX-License-Identifier: Apache-2.0 */

/* Trace context of W3C: 00-<trace id>-<span id>-<flags>. */

#include <time.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/text/str.h"
#include "otlp/internal.h"

enum { VERSION_AT = 0, TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53, TEXT_BYTES = 55, SAMPLED = 1 };

/* Lowercase only, as W3C has it. False: other characters. */
static bool read_hex(const char *at, size_t n, uint8_t *ret_bytes)
{
    for (size_t i = 0; i < 2 * n; i++) {
        const int digit = at[i] >= 'A' && at[i] <= 'F' ? -1 : peg__hex_value(at[i]);

        if (digit < 0)
            return false;
        ret_bytes[i / 2] = (uint8_t)(i % 2 ? ret_bytes[i / 2] | digit : digit << 4);
    }
    return true;
}

static char *put_hex(char *at, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
    return at;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

/* A later version may have more behind a dash. */
static bool has_right_length(peg_str text, uint8_t version)
{
    if (version == 0)
        return text.len == TEXT_BYTES;
    return version != 0xff && (text.len == TEXT_BYTES || text.ptr[TEXT_BYTES] == '-');
}

bool otlp_context_parse(peg_str traceparent, struct otlp_context *ret_context)
{
    const char *at = traceparent.ptr;
    struct otlp_context context;
    uint8_t version;
    uint8_t flags;

    if (traceparent.len < TEXT_BYTES || at[TRACE_AT - 1] != '-' || at[SPAN_AT - 1] != '-' ||
        at[FLAGS_AT - 1] != '-' || !read_hex(at + VERSION_AT, 1, &version) ||
        !has_right_length(traceparent, version) ||
        !read_hex(at + TRACE_AT, sizeof(context.trace_id), context.trace_id) ||
        !read_hex(at + SPAN_AT, sizeof(context.span_id), context.span_id) ||
        !read_hex(at + FLAGS_AT, 1, &flags) ||
        is_zero(context.trace_id, sizeof(context.trace_id)) ||
        is_zero(context.span_id, sizeof(context.span_id)))
        return false;
    context.is_sampled = flags & SAMPLED;
    *ret_context = context;
    return true;
}

void otlp_context_print(const struct otlp_context *context, char ret_text[OTLP_TRACEPARENT_TEXT])
{
    const uint8_t version = 0;
    char *at = put_hex(ret_text, &version, sizeof(version));

    *at++ = '-';
    at = put_hex(at, context->trace_id, sizeof(context->trace_id));
    *at++ = '-';
    at = put_hex(at, context->span_id, sizeof(context->span_id));
    memcpy(at, context->is_sampled ? "-01" : "-00", 4);
}

void otlp_trace_id_print(const struct otlp_context *context, char ret_text[OTLP_TRACE_ID_TEXT])
{
    *put_hex(ret_text, context->trace_id, sizeof(context->trace_id)) = '\0';
}

bool otlp__is_in_part(const struct otlp_context *context, double part)
{
    enum { RANDOM_BYTES = 7 }; /* the last ones, which W3C wants to be random */
    uint64_t number = 0;

    for (size_t i = sizeof(context->trace_id) - RANDOM_BYTES; i < sizeof(context->trace_id); i++)
        number = number << 8 | context->trace_id[i];
    return (double)number < part * (double)(UINT64_C(1) << (8 * RANDOM_BYTES));
}

/* ---- the beginning of a span ---- */

/* A clock of milliseconds would end children after their parents. */
int64_t otlp__now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * PEG_NS_PER_S + now.tv_nsec;
}

void otlp_span_restart(struct otlp_span *span)
{
    span->started_ns = otlp__now_ns();
    span->mono_ns = peg__mono_ns();
}

bool otlp_span_begin(struct otlp_exporter *exporter, peg_str traceparent,
                     struct otlp_span *ret_span)
{
    struct otlp_span span = {.exporter = NULL};

    if (!exporter)
        return false;
    span.has_parent = otlp_context_parse(traceparent, &span.context);
    if (span.has_parent)
        memcpy(span.parent, span.context.span_id, sizeof(span.parent));
    else if (!peg__random(span.context.trace_id, sizeof(span.context.trace_id)))
        return false;
    else
        span.context.is_sampled = otlp__is_in_part(&span.context, otlp__exporter_sample(exporter));
    if (!peg__random(span.context.span_id, sizeof(span.context.span_id)))
        return false;
    span.context.trace_id[0] |= (uint8_t)!span.has_parent; /* all zeroes would be none */
    span.context.span_id[0] |= 1;
    if (span.context.is_sampled)
        span.exporter = exporter;
    otlp_span_restart(&span);
    *ret_span = span;
    return true;
}
