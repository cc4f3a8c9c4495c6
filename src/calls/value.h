/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PEG_CALLS_VALUE_H
#define PEG_CALLS_VALUE_H

/* What the registers of a call hold: its identity, claim tokens, questions and replies, its outcome
 * (outcome.h). */

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
/* What the call is, for those who ask what became of it. Borrowed. */
struct calls_subject {
    peg_str toolset;
    peg_str tool;
    int64_t admitted_ms; /* cluster time; 0: unknown */
};
/* `subject` may be NULL. NULL: no memory. */
struct peg__blob *calls_identity_write(const struct calls_identity *identity,
                                       const struct calls_subject *subject);
bool calls_identity_read(const struct peg__blob *blob, struct calls_identity *ret_identity);
/* Of a blob that calls_identity_read() takes; empty where there is none. */
struct calls_subject calls_identity_subject(const struct peg__blob *blob);

/* A value that no other loop writes: "incarnation 9f86d081884c7d65.0 17". NULL: no memory. */
struct peg__blob *calls_claim_token(struct bus_address self, const char *owner, uint64_t number);
/* Its first word, or "" for what is no token; and the address in it. */
peg_str calls_claim_token_owner(const struct peg__blob *token, struct bus_address *ret_address);
/* The owner of a token that a coordinator writes: it took the attempt back, or there is none after
 * the one before, and the call was never started. */
#define CALLS_TOKEN_REVOKED "revoked"
#define CALLS_TOKEN_ENDED "ended"
bool calls_claim_token_is_coordinator(peg_str owner);

/* What a running call asks. */
struct calls_question {
    peg_str incarnation; /* of the provider that asks */
    uint32_t attempt;
    uint32_t number; /* the provider's own */
    peg_str requests;
};
/* NULL: no memory. */
struct peg__blob *calls_question_write(const struct calls_question *question);
bool calls_question_read(const struct peg__blob *blob, struct calls_question *ret_question);

enum calls_reply_kind {
    CALLS_REPLY_RESPONSES = 'r',
    CALLS_REPLY_REFUSAL = 'n',   /* there is no answer: why */
    CALLS_REPLY_WITHDRAWN = 'w', /* the tool does not wait any more */
};
struct calls_reply {
    struct bus_address by; /* with `unique`: makes each such value its own */
    uint64_t unique;
    enum calls_reply_kind kind;
    peg_str text;
};
/* NULL: no memory. */
struct peg__blob *calls_reply_write(const struct calls_reply *reply);
/* Its kind and its text. */
bool calls_reply_read(const struct peg__blob *blob, struct calls_reply *ret_reply);

/* The caller chose an identity, or the id is random. */
static inline bool calls_id_is_keyed(const struct bus_id *id)
{
    return id->len == sizeof(id->bytes);
}
/* How long registers of an id are of use, to whichever side writes them; those of an identity for
 * `keep_ms` after the deadline. */
int64_t calls_keep_until(const struct bus_id *id, int64_t deadline_ms, int64_t keep_ms);
/* Random ids say whether only loops of this node ask for their registers, and which loop of its
 * node coordinates the call. */
static inline bool calls_id_is_node_local(const struct bus_id *id)
{
    return id->len == 16 && (id->bytes[15] & 1);
}
static inline uint32_t calls_id_loop(const struct bus_id *id)
{
    return id->bytes[14];
}

/* `n`: the attempt, or the question; 0 for the other registers. */
static inline struct bus_key calls_key(const struct bus_id *id, enum bus_register what, uint32_t n)
{
    return (struct bus_key){
        .id = *id, .what = (char)what, .n = n, .is_node_local = calls_id_is_node_local(id)};
}

typedef void calls_answer_fn(struct bus_wait *wait, const struct bus_answer *answer);
/* `fn` gets what the register holds. */
static inline void calls_read_register(struct bus *bus, struct bus_key key, struct bus_wait *wait,
                                       calls_answer_fn *fn)
{
    wait->fn = fn;
    bus_read(bus, &key, wait);
}

#endif
