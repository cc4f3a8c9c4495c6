/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_CHECK_H
#define PEG_CALLS_CHECK_H

/* Payloads and results against schemas. */

#include "calls/calls.h"

struct calls_check;

/* Does the JSON text, of this name, fit? PEG_OK; PEG_ESCHEMA, PEG_EPARSE with words in calls->text;
 * PEG_ELIMIT: it takes long, so if there is a loop ask a worker. PEG_ENOMEM: there are no words
 * about it. */
peg_status calls_check_now(struct calls_loop *calls, peg_schema *schema, peg_str json,
                           const char *name);
/* Is what the response has as typed content (wire/content.h) that, and does the tool promise no
 * JSON? Likewise. */
peg_status calls_check_content(struct calls_loop *calls, peg_schema *schema, peg_str response);

/* What is large: a payload; or a response as calls_provider_result() takes it, with its result,
 * unless that is "", its content, and the data of all its server-data. */
struct calls_check_text {
    peg_str json;     /* the payload, or the result */
    peg_str response; /* "": it is a payload */
    uint16_t account; /* for which the blob of a response is counted until it is read */
};
typedef void calls_check_fn(void *user, peg_status status, peg_str words);
/* The same on a worker, of text that lies in `keep`; `done` comes on the loop, `words` borrowed.
 * NULL: no memory, and `done` will not come. */
struct calls_check *calls_check_start(struct calls_loop *calls, peg_schema *schema,
                                      struct peg__blob *keep, const struct calls_check_text *text,
                                      calls_check_fn *done, void *user);
/* As what a call whose payload was checked with this status is rejected. */
enum calls_error calls_check_error(peg_status status);
/* `done` does not come any more. */
void calls_check_forget(struct calls_check *check);

#endif
