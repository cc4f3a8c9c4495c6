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

struct peg__blob *calls_identity_write(const struct calls_identity *identity,
                                       const struct calls_subject *subject)
{
    struct subject_head own = {0};
    struct head head = {
        .node = identity->coordinator.node,
        .loop = identity->coordinator.loop,
        .number = identity->number,
        .epoch = identity->epoch,
        .deadline_ms = identity->deadline_ms,
    };
    peg_str parts[5] = {{(const char *)&head, sizeof(head)}, identity->principal};

    memcpy(head.digest, identity->digest, sizeof(head.digest));
    if (!subject)
        return peg__blob_join(parts, 2);
    own = (struct subject_head){subject->admitted_ms, subject->toolset.len};
    head.subject_len = (uint32_t)(sizeof(own) + subject->toolset.len + subject->tool.len);
    parts[2] = peg__strn((const char *)&own, sizeof(own));
    parts[3] = subject->toolset;
    parts[4] = subject->tool;
    return peg__blob_join(parts, 5);
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

/* ---- texts ---- */

enum {
    MAX_OWNER = 64, /* an incarnation, or what calls_claim_token_is_coordinator() knows */
    MAX_NUMBER = 20,
};

static char *put_owner(char *at, peg_str owner)
{
    memcpy(at, owner.ptr, owner.len);
    at[owner.len] = ' ';
    return at + owner.len + 1;
}

static char *put_address(char *at, struct bus_address address, char end)
{
    bus_address_print(address, at);
    at += strlen(at);
    *at = end;
    return at + 1;
}

static char *put_number(char *at, uint64_t number, char end)
{
    at = peg__put_decimal(at, number);
    *at = end;
    return at + 1;
}

/* A head that ends at `end`, and the text behind it. */
static struct peg__blob *join(const char *head, const char *end, peg_str text)
{
    const peg_str parts[] = {{head, (size_t)(end - head)}, text};

    return peg__blob_join(parts, 2);
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

/* ---- claim tokens: "owner address number" ---- */

struct peg__blob *calls_claim_token(struct bus_address self, const char *owner, uint64_t number)
{
    char text[MAX_OWNER + BUS_ADDRESS_TEXT + MAX_NUMBER + 2];
    char *at = put_owner(text, peg__str(owner));

    at = put_address(at, self, ' ');
    at = peg__put_decimal(at, number);
    return peg__blob_copy(peg__strn(text, (size_t)(at - text)));
}

bool calls_claim_token_is_coordinator(peg_str owner)
{
    return peg__str_is(owner, CALLS_TOKEN_REVOKED) || peg__str_is(owner, CALLS_TOKEN_ENDED);
}

peg_str calls_claim_token_owner(const struct peg__blob *token, struct bus_address *ret_address)
{
    peg_str text = peg__blob_str(token);
    peg_str owner;
    peg_str address;

    *ret_address = (struct bus_address){0};
    if (!cut_word(&text, ' ', &owner))
        return (peg_str){"", 0};
    if (!cut_word(&text, ' ', &address))
        address = text;
    bus_address_parse(address, ret_address);
    return owner;
}

/* ---- questions: "incarnation attempt number", a line feed, the requests ---- */

struct peg__blob *calls_question_write(const struct calls_question *question)
{
    char head[MAX_OWNER + 2 * MAX_NUMBER + 3];
    char *at;

    if (question->incarnation.len > MAX_OWNER)
        return NULL;
    at = put_owner(head, question->incarnation);
    at = put_number(at, question->attempt, ' ');
    at = put_number(at, question->number, '\n');
    return join(head, at, question->requests);
}

bool calls_question_read(const struct peg__blob *blob, struct calls_question *ret_question)
{
    peg_str text = peg__blob_str(blob);

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
    char head[2 + BUS_ADDRESS_TEXT + MAX_NUMBER + 2] = {(char)reply->kind, ' '};
    char *at = put_address(head + 2, reply->by, ' ');

    at = put_number(at, reply->unique, '\n');
    return join(head, at, reply->text);
}

bool calls_reply_read(const struct peg__blob *blob, struct calls_reply *ret_reply)
{
    peg_str text = peg__blob_str(blob);
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
