/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_VALUE_H
#define PEG_CALLS_VALUE_H

/* What the registers of a call hold: its identity, claim tokens, its outcome (outcome.h). */

#include "bus/bus.h"
#include "calls/outcome.h"

struct calls_identity {
    unsigned char digest[32]; /* of the request */
    struct bus_address coordinator;
    int64_t deadline_ms;
    uint64_t epoch;
    uint64_t number;   /* makes each such value its own */
    peg_str principal; /* borrowed */
};
/* NULL: no memory. */
struct peg__blob *calls_identity_write(const struct calls_identity *identity);
bool calls_identity_read(const struct peg__blob *blob, struct calls_identity *ret_identity);

/* A value that no other loop writes: "incarnation 9f86d081884c7d65.0 17". NULL: no memory. */
struct peg__blob *calls_claim_token(struct bus_address self, const char *owner, uint64_t number);
/* Its first word, or "" for what is no token; and the address in it. */
peg_str calls_claim_token_owner(const struct peg__blob *token, struct bus_address *ret_address);
/* The owner of a token that a coordinator writes: it took the attempt back, or there is none after
 * the one before, and the call was never started. */
#define CALLS_TOKEN_REVOKED "revoked"
#define CALLS_TOKEN_ENDED "ended"
bool calls_claim_token_is_coordinator(peg_str owner);

/* The caller chose an identity, or the id is random. */
static inline bool calls_id_is_keyed(const struct bus_id *id)
{
    return id->len == sizeof(id->bytes);
}
/* Random ids say whether only loops of this node ask for their registers. */
static inline bool calls_id_is_node_local(const struct bus_id *id)
{
    return id->len == 16 && (id->bytes[15] & 1);
}

#endif
