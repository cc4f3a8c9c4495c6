/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/value.h"

#include <string.h>

#include "base/text/str.h"

/* ---- the identity: this head, then the principal ---- */

struct head {
    unsigned char digest[32];
    uint64_t node;
    uint64_t number;
    uint64_t epoch;
    int64_t deadline_ms;
    uint32_t loop;
    uint32_t reserved;
};

struct peg__blob *calls_identity_write(const struct calls_identity *identity)
{
    const peg_str principal = identity->principal;
    struct peg__blob *blob = peg__blob_new(sizeof(struct head) + principal.len);
    struct head head = {
        .node = identity->coordinator.node,
        .loop = identity->coordinator.loop,
        .number = identity->number,
        .epoch = identity->epoch,
        .deadline_ms = identity->deadline_ms,
    };

    if (!blob)
        return NULL;
    memcpy(head.digest, identity->digest, sizeof(head.digest));
    memcpy(blob->bytes, &head, sizeof(head));
    if (principal.len)
        memcpy(blob->bytes + sizeof(head), principal.ptr, principal.len);
    return blob;
}

bool calls_identity_read(const struct peg__blob *blob, struct calls_identity *ret_identity)
{
    struct head head;

    if (!blob || blob->len < sizeof(head))
        return false;
    memcpy(&head, blob->bytes, sizeof(head));
    *ret_identity = (struct calls_identity){
        .coordinator = {.node = head.node, .loop = head.loop},
        .deadline_ms = head.deadline_ms,
        .epoch = head.epoch,
        .number = head.number,
        .principal = {blob->bytes + sizeof(head), blob->len - sizeof(head)},
    };
    memcpy(ret_identity->digest, head.digest, sizeof(head.digest));
    return true;
}

/* ---- claim tokens ---- */

enum { MAX_OWNER = 64 }; /* an incarnation, or what calls_claim_token_is_coordinator() knows */

struct peg__blob *calls_claim_token(struct bus_address self, const char *owner, uint64_t number)
{
    const peg_str name = peg__str(owner);
    char text[MAX_OWNER + 1 + BUS_ADDRESS_TEXT + 20];
    char *at = text;

    memcpy(at, name.ptr, name.len);
    at += name.len;
    *at++ = ' ';
    bus_address_print(self, at);
    at += strlen(at);
    *at++ = ' ';
    at = peg__put_decimal(at, number);
    return peg__blob_copy(peg__strn(text, (size_t)(at - text)));
}

bool calls_claim_token_is_coordinator(peg_str owner)
{
    return peg__str_is(owner, CALLS_TOKEN_REVOKED) || peg__str_is(owner, CALLS_TOKEN_ENDED);
}

peg_str calls_claim_token_owner(const struct peg__blob *token, struct bus_address *ret_address)
{
    const peg_str text = peg__blob_str(token);
    const char *space = (const char *)memchr(text.ptr, ' ', text.len);
    const char *end;
    peg_str rest;

    *ret_address = (struct bus_address){0};
    if (!space)
        return (peg_str){"", 0};
    rest = peg__str_from(text, (size_t)(space - text.ptr) + 1);
    end = (const char *)memchr(rest.ptr, ' ', rest.len);
    bus_address_parse((peg_str){rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len}, ret_address);
    return (peg_str){text.ptr, (size_t)(space - text.ptr)};
}
