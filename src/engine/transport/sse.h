/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_ENGINE_TRANSPORT_SSE_H
#define PEG_ENGINE_TRANSPORT_SSE_H

/*
 * Server-sent events, byte by byte if need be: bytes in, events out, no I/O. Lines end with LF, CR
 * or CRLF, also split between two reads; a byte order mark is passed over; comments and unknown
 * fields are ignored; data lines are joined by LF. An event that the end of the stream cuts off
 * before its blank line is told all the same: servers leave that line out.
 *
 * Owned.
 */

#include "base/buf.h"

struct peg__sse {
    struct peg__buf line;
    struct peg__buf event; /* name; empty: "message" */
    struct peg__buf data;
    bool has_data;
    bool was_cr; /* the last byte was a CR: a LF belongs to it */
    bool is_past_start;
};

/* name is "message" where none was given. Anything but PEG_OK ends feeding and is returned. Both
 * strings are the parser's own, valid during the call. */
typedef peg_status (*peg__sse_fn)(peg_str name, peg_str data, void *user, peg_error *reterr);

/* max_bytes: of one line, and of one event's data. */
void peg__sse_init(struct peg__sse *sse, size_t max_bytes);
void peg__sse_free(struct peg__sse *sse);
/* PEG_ELIMIT (E_ENGINE_TOO_LARGE), PEG_ENOMEM, or what fn returned. */
peg_status peg__sse_feed(struct peg__sse *sse, peg_str bytes, peg__sse_fn fn, void *user,
                         peg_error *reterr);
/* The stream has ended. */
peg_status peg__sse_end(struct peg__sse *sse, peg__sse_fn fn, void *user, peg_error *reterr);

#endif
