/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_OTLP_OTLP_H
#define PEG_OTLP_OTLP_H

/*
 * Spans for OpenTelemetry, sent by OTLP over HTTP (protobuf):
 *
 *   caller's thread   otlp_span_begin() ... otlp_span_end(): packs the span, adds it to a buffer
 *   exporter's thread sends what waits, at most a second later, and again while the collector is
 *                     away
 *
 * Ending a span waits for no network. The buffer is bounded: spans that it has no room for are
 * dropped and counted.
 *
 *   trace.c     W3C trace context, sampling
 *   span.c      a span as bytes
 *   exporter.c  the buffer and the thread
 *   url.c       the endpoint
 *   post.c      one HTTP request
 */

#include "base/limits/otlp.h"
#include "pegboard/common.h"

/* ---- trace context: values ---------------------------------------------------------------- */

enum { OTLP_TRACEPARENT_TEXT = 56, OTLP_TRACE_ID_TEXT = 33 };

struct otlp_context {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    bool is_sampled;
};

/* A traceparent of W3C. False: it is none, and the call has no parent. */
bool otlp_context_parse(peg_str traceparent, struct otlp_context *ret_context);
void otlp_context_print(const struct otlp_context *context, char ret_text[OTLP_TRACEPARENT_TEXT]);
void otlp_trace_id_print(const struct otlp_context *context, char ret_text[OTLP_TRACE_ID_TEXT]);

/* ---- the exporter: any thread ------------------------------------------------------------- */

struct otlp_exporter;

struct otlp_options {
    const char *endpoint; /* http://HOST:PORT or https://, as OTEL_EXPORTER_OTLP_ENDPOINT has it */
    /* Which part of the calls without a trace context begin a trace; 0: all, below 0: none. */
    double sample;
    const char *service;  /* service.name */
    const char *instance; /* service.instance.id; NULL: none */
};

/* Starts its thread. PEG_EINVAL (E_OTLP): no such endpoint, or sample is above 1; PEG_EIO (E_OTLP):
 * no thread, (E_TLS_CONFIG): no roots for https://; PEG_ENOMEM. */
peg_status otlp_exporter_new(const struct otlp_options *options,
                             struct otlp_exporter **ret_exporter, peg_error *reterr);
/* Sends what waits, for at most PEG_LIMIT_OTLP_LAST_MS; a name server that does not answer can take
 * longer, as long as the system's resolver waits for it. No span of it is open any more. NULL is
 * allowed. */
struct otlp_exporter *otlp_exporter_free(struct otlp_exporter *exporter);

struct otlp_counts {
    uint64_t n_exported; /* the collector took them */
    uint64_t n_dropped;  /* there was no room for them, or the collector refused them */
    uint64_t n_failures; /* requests that failed */
};
/* NULL: all are 0. */
struct otlp_counts otlp_exporter_counts(const struct otlp_exporter *exporter);

/* ---- spans -------------------------------------------------------------------------------- */

enum otlp_kind { OTLP_INTERNAL = 1, OTLP_SERVER = 2 }; /* as in OTLP */

/* A value in its owner's memory; one thread at a time. */
struct otlp_span {
    struct otlp_exporter *exporter; /* NULL: it is not sampled */
    struct otlp_context context;    /* what goes to those called, sampled or not */
    uint8_t parent[8];
    bool has_parent;
    int64_t started_ns; /* Unix time */
    int64_t mono_ns;    /* the same moment by the clock that goes evenly, for durations in logs */
};

/* A child of `traceparent`, sampled as it is; without one the first span of a trace. False: the
 * system has no randomness, and there is neither span nor context. */
bool otlp_span_begin(struct otlp_exporter *exporter, peg_str traceparent,
                     struct otlp_span *ret_span);
/* It began just now, not when it was made. */
void otlp_span_restart(struct otlp_span *span);

struct otlp_attribute {
    const char *key;
    peg_str value; /* "": left out; cut at PEG_LIMIT_OTLP_VALUE_BYTES */
};

struct otlp_end {
    const char *operation; /* the name of the span is this and the target */
    peg_str target;
    enum otlp_kind kind;
    const struct otlp_attribute *attributes; /* at most PEG_LIMIT_OTLP_ATTRIBUTES */
    size_t n_attributes;
    peg_str error_type; /* "": it went well */
};
/* Nothing for one that is not sampled. */
void otlp_span_end(const struct otlp_span *span, const struct otlp_end *end);

#endif
