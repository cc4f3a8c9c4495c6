/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_BASE_LIMITS_OTLP_H
#define PEG_BASE_LIMITS_OTLP_H

/* Limits of spans for OpenTelemetry, with their reasons; see base/limits.h. */

enum {
    /* Spans that wait for a collector, and as many again that are being sent: some 3,000 spans, a
     * few seconds of a busy gateway. More are dropped and counted, so that a collector that is away
     * costs no memory. */
    PEG_LIMIT_OTLP_QUEUE_BYTES = 1 << 20,
    /* So many are sent before their time: collectors take 4 MiB at once, and small batches arrive
     * sooner. */
    PEG_LIMIT_OTLP_BATCH_BYTES = 256 << 10,
    /* A span waits so long for others that go with it. */
    PEG_LIMIT_OTLP_DELAY_MS = 1000,
    /* For one request to a collector, from the connection to its answer. OpenTelemetry's SDKs have
     * the same. A name server that does not answer can take longer: the system's resolver has no
     * deadline of ours. */
    PEG_LIMIT_OTLP_REQUEST_MS = 10000,
    /* After a request that failed, then twice as long each time: a collector that comes back has
     * its spans soon, and one that stays away is not called often. */
    PEG_LIMIT_OTLP_BACKOFF_MS = 500,
    PEG_LIMIT_OTLP_BACKOFF_MAX_MS = 8000,
    /* At the end, for what waits: a node that stops does not wait for its collector longer, unless
     * a name server does not answer. */
    PEG_LIMIT_OTLP_LAST_MS = 2000,
    /* One attribute of a span: names have at most 256 bytes, ids fewer. */
    PEG_LIMIT_OTLP_VALUE_BYTES = 256,
    /* Of one span. */
    PEG_LIMIT_OTLP_ATTRIBUTES = 12,
    /* The endpoint, as it is given. */
    PEG_LIMIT_OTLP_URL_BYTES = 1024,
};

#endif
