/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_OTLP_INTERNAL_H
#define PEG_OTLP_INTERNAL_H

#include <stdatomic.h>

#include "base/buf.h"
#include "net/address.h"
#include "net/tls/tls.h"
#include "otlp/otlp.h"

/* ---- trace.c ---- */

/* Does a trace with this id belong to the part? The id decides, so that all who have the same ratio
 * decide alike. */
bool otlp__is_in_part(const struct otlp_context *context, double part);

/* Unix time. Beginning and end are both read from it, so that the spans of one machine lie within
 * each other, whenever a thread is held up. */
int64_t otlp__now_ns(void);

/* ---- span.c ---- */

enum {
    OTLP__SPAN_BYTES = 256 + (PEG_LIMIT_OTLP_ATTRIBUTES + 2) * (PEG_LIMIT_OTLP_VALUE_BYTES + 64)
};

/* A field `spans` of ScopeSpans. Returns its length. */
size_t otlp__span_pack(const struct otlp_span *span, const struct otlp_end *end,
                       char ret_bytes[OTLP__SPAN_BYTES]);
/* What goes before `n` bytes of such fields, to be a whole ExportTraceServiceRequest. */
void otlp__request_head(const struct otlp_options *options, size_t n, struct peg__buf *out);

/* ---- exporter.c ---- */

/* Any thread: adds the packed span, or drops it. */
void otlp__exporter_add(struct otlp_exporter *exporter, peg_str packed);
double otlp__exporter_sample(const struct otlp_exporter *exporter);

/* ---- url.c ---- */

/* A value: where requests go. */
struct otlp__url {
    bool is_tls;
    struct net_endpoint endpoint;
    char authority[NET_HOST_BYTES + 16]; /* for Host */
    char path[PEG_LIMIT_OTLP_URL_BYTES + 16];
};

/* PEG_EINVAL (E_OTLP). */
peg_status otlp__url_parse(const char *text, struct otlp__url *ret_url, peg_error *reterr);

/* ---- post.c ---- */

struct otlp__post {
    const struct otlp__url *url;
    struct net_tls_config *tls; /* NULL: none */
    /* Until then at most, by the clock that goes evenly; 0: the exporter goes on. */
    const _Atomic int64_t *last_ns;
    peg_str head; /* of the body */
    peg_str rest;
};

/* Sends one request on a connection of its own, and waits for the status of its answer: 200 and
 * so on. 0: there was none in time. */
int otlp__post(const struct otlp__post *post);

#endif
