/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/value.h"

#include <string.h>

#include "base/text/str.h"

/* ---- the identity: this head, the principal, the subject ---- */

struct head {
    unsigned char digest[32];
    uint64_t node;
    uint64_t number;
    uint64_t epoch;
    int64_t deadline_ms;
    uint32_t loop;
    uint32_t subject_len; /* 0: there is none */
};

/* Then the toolset and the tool. */
struct subject_head {
    int64_t admitted_ms;
    uint64_t toolset_len;
};

static size_t subject_size(const struct calls_subject *subject)
{
    return subject ? sizeof(struct subject_head) + subject->toolset.len + subject->tool.len : 0;
}

static char *put_str(char *at, peg_str text)
{
    return text.len ? (char *)memcpy(at, text.ptr, text.len) + text.len : at;
}

static void put_subject(char *at, const struct calls_subject *subject)
{
    const struct subject_head head = {
        .admitted_ms = subject->admitted_ms,
        .toolset_len = subject->toolset.len,
    };

    memcpy(at, &head, sizeof(head));
    put_str(put_str(at + sizeof(head), subject->toolset), subject->tool);
}

struct peg__blob *calls_identity_write(const struct calls_identity *identity,
                                       const struct calls_subject *subject)
{
    const peg_str principal = identity->principal;
    struct peg__blob *blob =
        peg__blob_new(sizeof(struct head) + principal.len + subject_size(subject));
    struct head head = {
        .node = identity->coordinator.node,
        .loop = identity->coordinator.loop,
        .number = identity->number,
        .epoch = identity->epoch,
        .deadline_ms = identity->deadline_ms,
        .subject_len = (uint32_t)subject_size(subject),
    };
    char *at;

    if (!blob)
        return NULL;
    memcpy(head.digest, identity->digest, sizeof(head.digest));
    memcpy(blob->bytes, &head, sizeof(head));
    at = put_str(blob->bytes + sizeof(head), principal);
    if (subject)
        put_subject(at, subject);
    return blob;
}

bool calls_identity_read(const struct peg__blob *blob, struct calls_identity *ret_identity)
{
    struct head head;

    if (!blob || blob->len < sizeof(head))
        return false;
    memcpy(&head, blob->bytes, sizeof(head));
    if (head.subject_len > blob->len - sizeof(head))
        return false;
    *ret_identity = (struct calls_identity){
        .coordinator = {.node = head.node, .loop = head.loop},
        .deadline_ms = head.deadline_ms,
        .epoch = head.epoch,
        .number = head.number,
        .principal = {blob->bytes + sizeof(head), blob->len - sizeof(head) - head.subject_len},
    };
    memcpy(ret_identity->digest, head.digest, sizeof(head.digest));
    return true;
}

struct calls_subject calls_identity_subject(const struct peg__blob *blob)
{
    struct calls_subject subject = {{"", 0}, {"", 0}, 0};
    struct subject_head own;
    struct head head;
    peg_str names;

    memcpy(&head, blob->bytes, sizeof(head));
    if (head.subject_len < sizeof(own) || head.subject_len > blob->len - sizeof(head))
        return subject;
    memcpy(&own, blob->bytes + blob->len - head.subject_len, sizeof(own));
    names = (peg_str){blob->bytes + blob->len - head.subject_len + sizeof(own),
                      head.subject_len - sizeof(own)};
    if (own.toolset_len > names.len)
        return subject;
    subject.admitted_ms = own.admitted_ms;
    subject.toolset = (peg_str){names.ptr, own.toolset_len};
    subject.tool = peg__str_from(names, own.toolset_len);
    return subject;
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

/* ---- questions: "incarnation attempt number", a line feed, the requests ---- */

enum { MAX_NUMBER = 20 };

static struct peg__blob *join(peg_str head, peg_str text)
{
    struct peg__blob *blob = peg__blob_new(head.len + text.len);

    if (!blob)
        return NULL;
    memcpy(blob->bytes, head.ptr, head.len);
    if (text.len)
        memcpy(blob->bytes + head.len, text.ptr, text.len);
    return blob;
}

struct peg__blob *calls_question_write(const struct calls_question *question)
{
    const peg_str name = question->incarnation;
    char head[MAX_OWNER + 2 * MAX_NUMBER + 4];
    char *at = head;

    if (name.len > MAX_OWNER)
        return NULL;
    memcpy(at, name.ptr, name.len);
    at += name.len;
    *at++ = ' ';
    at = peg__put_decimal(at, question->attempt);
    *at++ = ' ';
    at = peg__put_decimal(at, question->number);
    *at++ = '\n';
    return join(peg__strn(head, (size_t)(at - head)), question->requests);
}

/* Up to `end`, which is left out; false: it is not there. */
static bool cut_word(peg_str *text, char end, peg_str *ret_word)
{
    const char *found = text->len ? (const char *)memchr(text->ptr, end, text->len) : NULL;

    if (!found)
        return false;
    *ret_word = peg__strn(text->ptr, (size_t)(found - text->ptr));
    *text = peg__str_from(*text, ret_word->len + 1);
    return true;
}

static bool cut_number(peg_str *text, char end, uint32_t *ret_number)
{
    peg_str word;
    uint64_t number = 0;

    if (!cut_word(text, end, &word) || !word.len)
        return false;
    for (size_t i = 0; i < word.len; i++) {
        if (word.ptr[i] < '0' || word.ptr[i] > '9' || number > UINT32_MAX / 10)
            return false;
        number = number * 10 + (uint64_t)(word.ptr[i] - '0');
    }
    *ret_number = (uint32_t)number;
    return number <= UINT32_MAX;
}

bool calls_question_read(const struct peg__blob *blob, struct calls_question *ret_question)
{
    peg_str text = blob ? peg__blob_str(blob) : (peg_str){"", 0};

    if (!cut_word(&text, ' ', &ret_question->incarnation) ||
        ret_question->incarnation.len > MAX_OWNER ||
        !cut_number(&text, ' ', &ret_question->attempt) ||
        !cut_number(&text, '\n', &ret_question->number))
        return false;
    ret_question->requests = text;
    return true;
}

/* ---- replies: "kind address number", a line feed, the text ---- */

struct peg__blob *calls_reply_write(const struct calls_reply *reply)
{
    char head[2 + BUS_ADDRESS_TEXT + MAX_NUMBER + 2];
    char *at = head;

    *at++ = (char)reply->kind;
    *at++ = ' ';
    bus_address_print(reply->by, at);
    at += strlen(at);
    *at++ = ' ';
    at = peg__put_decimal(at, reply->unique);
    *at++ = '\n';
    return join(peg__strn(head, (size_t)(at - head)), reply->text);
}

bool calls_reply_read(const struct peg__blob *blob, struct calls_reply *ret_reply)
{
    peg_str text = blob ? peg__blob_str(blob) : (peg_str){"", 0};
    peg_str head;

    if (!cut_word(&text, '\n', &head) || !head.len)
        return false;
    *ret_reply = (struct calls_reply){.kind = (enum calls_reply_kind)head.ptr[0], .text = text};
    return head.ptr[0] == CALLS_REPLY_RESPONSES || head.ptr[0] == CALLS_REPLY_REFUSAL ||
           head.ptr[0] == CALLS_REPLY_WITHDRAWN;
}

/* ---- how long ---- */

/* Registers outlive the deadline of a call by so much, so that a message that comes late finds
 * them: provider sides take none after its deadline, and clocks of nodes differ by less. */
enum { KEEP_UNKEYED_MS = 15000 };

int64_t calls_keep_until(const struct bus_id *id, int64_t deadline_ms, int64_t keep_ms)
{
    return deadline_ms + (calls_id_is_keyed(id) ? keep_ms : (int64_t)KEEP_UNKEYED_MS);
}
