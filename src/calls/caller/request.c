/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked for: the id of the call, the digest that tells whether two requests of one identity
 * are the same, and the form that is sent to a provider. */

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "calls/caller/call.h"
#include "pegboard/v1/registry.fields.h"
#include "wire/pack.h"

static peg_str payload_of(const struct calls_request *request)
{
    return request->payload.len ? request->payload : (peg_str)PEG_LIT("{}");
}

/* ---- the id ---- */

static void add_part(struct peg__buf *buf, peg_str part)
{
    const uint32_t len = (uint32_t)part.len;

    peg__buf_add(buf, &len, sizeof(len));
    peg__buf_str(buf, part);
}

/* Lengths go before the parts, so that no two identities read the same. The kind of identity comes
 * first. */
static bool id_of_identity(struct calls_loop *calls, const struct calls_request *request,
                           struct bus_id *ret_id)
{
    struct peg__buf parts = PEG__BUF(PEG_LIMIT_GATEWAY_MESSAGE_BYTES);
    const peg_str secret = {(const char *)calls->options.secret, sizeof(calls->options.secret)};
    bool is_made;

    peg__buf_puts(&parts, request->key.len ? "key" : "run");
    add_part(&parts, request->principal);
    add_part(&parts, request->toolset);
    if (request->key.len) {
        add_part(&parts, request->key);
    } else {
        add_part(&parts, request->run_id);
        add_part(&parts, request->tool_call_id);
    }
    *ret_id = (struct bus_id){.len = sizeof(ret_id->bytes)};
    is_made = !parts.status && peg__hmac_sha256(secret, peg__buf_view(&parts), ret_id->bytes);
    peg__buf_free(&parts);
    return is_made;
}

bool calls_random_id(struct calls_loop *calls, bool is_node_local, struct bus_id *ret_id)
{
    enum { LEN = 16 };

    if (calls->n_random < LEN) {
        if (!peg__random(calls->random, sizeof(calls->random)))
            return false;
        calls->n_random = sizeof(calls->random);
    }
    *ret_id = (struct bus_id){.len = LEN};
    memcpy(ret_id->bytes, calls->random + sizeof(calls->random) - calls->n_random, LEN);
    ret_id->bytes[LEN - 2] = (uint8_t)calls->bus->self.loop; /* calls_id_loop() */
    ret_id->bytes[LEN - 1] = (uint8_t)((ret_id->bytes[LEN - 1] & ~1) | is_node_local);
    calls->n_random -= LEN;
    return true;
}

bool calls_request_id(struct calls_loop *calls, const struct calls_request *request,
                      struct bus_id *ret_id)
{
    if (request->key.len || (request->run_id.len && request->tool_call_id.len))
        return id_of_identity(calls, request, ret_id);
    /* If all providers are here, the registers of the call need not leave the node. */
    return calls_random_id(calls, calls->env->is_served_here(calls->user, request->toolset),
                           ret_id);
}

/* ---- the digest: payloads that differ in white space alone are the same. They are not parsed for
 * this: large ones are not read on the loop, and those of further callers are not read at all ----
 */

/* When it is full its digest takes its place, so that it needs no memory. */
struct block {
    unsigned char bytes[PEG_SHA256_BYTES + 2048];
    size_t len;
};

static bool fold(struct block *block)
{
    const peg_str bytes = {(const char *)block->bytes, block->len};
    unsigned char digest[PEG_SHA256_BYTES];

    if (!peg__sha256(bytes, digest))
        return false;
    memcpy(block->bytes, digest, sizeof(digest));
    block->len = sizeof(digest);
    return true;
}

static bool add_to_digest(struct block *block, const char *at, const char *end)
{
    while (at < end) {
        const size_t room = sizeof(block->bytes) - block->len;
        const size_t n = (size_t)(end - at) < room ? (size_t)(end - at) : room;

        memcpy(block->bytes + block->len, at, n);
        block->len += n;
        at += n;
        if (at < end && !fold(block))
            return false;
    }
    return true;
}

static bool is_json_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* By an odd number of backslashes. */
static bool is_escaped(const char *start, const char *quote)
{
    const char *at = quote;

    while (at > start && at[-1] == '\\')
        at--;
    return (quote - at) % 2;
}

/* From behind its first quote. */
static const char *end_of_string(const char *start, const char *end)
{
    const char *quote = memchr(start, '"', (size_t)(end - start));

    while (quote && is_escaped(start, quote))
        quote = memchr(quote + 1, '"', (size_t)(end - quote - 1));
    return quote ? quote + 1 : end;
}

/* Eight bytes at once, as payloads may be large: is none of them a quote or less, as spaces are? */
static bool are_plain(const char *at)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return !((word - ('"' + 1) * ones) & ~word & 0x80 * ones);
}

static const char *end_of_run(const char *at, const char *end)
{
    while (at < end && !is_json_space(*at)) {
        if (end - at >= 8 && are_plain(at))
            at += 8;
        else
            at = *at == '"' ? end_of_string(at + 1, end) : at + 1;
    }
    return at;
}

static bool add_compact(struct block *block, peg_str json)
{
    const char *at = json.ptr;
    const char *end = json.ptr + json.len;

    while (at < end) {
        const char *start = at;

        at = end_of_run(at, end);
        if (!add_to_digest(block, start, at))
            return false;
        while (at < end && is_json_space(*at))
            at++;
    }
    return true;
}

bool calls_request_digest(const struct calls_request *request, unsigned char ret_digest[32])
{
    struct block block;

    if (!peg__sha256(request->tool, block.bytes))
        return false;
    block.len = PEG_SHA256_BYTES;
    if (!add_compact(&block, payload_of(request)) || !fold(&block))
        return false;
    memcpy(ret_digest, block.bytes, PEG_SHA256_BYTES);
    return true;
}

/* ---- the packed form; attempt, timeout and route are the provider side's ---- */

static peg_status pack(struct calls_call *call, const struct calls_request *request)
{
    const peg_str payload = payload_of(request);
    const uint64_t deadline_ms = (uint64_t)call->machine.deadline_ms;
    char id[BUS_ID_TEXT];
    peg_str id_text;
    size_t size;
    char *at;

    bus_id_print(&call->entry.id, id);
    id_text = peg__str(id);
    size = wire_bytes_size(id_text) + wire_bytes_size(request->tool) + wire_bytes_size(payload) +
           wire_number_size(deadline_ms) + request->packed.len +
           wire_bytes_size(request->principal) + wire_number_size(request->can_be_asked);
    call->request = peg__blob_new(size);
    if (!call->request)
        return PEG_ENOMEM;
    at = wire_put_bytes(call->request->bytes, PEGBOARD_V1_CALL_CALL_ID_FIELD, id_text);
    at = wire_put_bytes(at, PEGBOARD_V1_CALL_TOOL_FIELD, request->tool);
    at = wire_put_bytes(at, PEGBOARD_V1_CALL_PAYLOAD_FIELD, payload);
    call->payload = (peg_str){at - payload.len, payload.len};
    at = wire_put_number(at, PEGBOARD_V1_CALL_DEADLINE_UNIX_MS_FIELD, deadline_ms);
    if (request->packed.len)
        at = (char *)memcpy(at, request->packed.ptr, request->packed.len) + request->packed.len;
    at = wire_put_bytes(at, PEGBOARD_V1_CALL_CALLER_FIELD, request->principal);
    call->caller_name = (peg_str){at - request->principal.len, request->principal.len};
    wire_put_number(at, PEGBOARD_V1_CALL_CAN_BE_ASKED_FIELD, request->can_be_asked);
    return PEG_OK;
}

struct peg__blob *calls_call_make_identity(const struct calls_call *call, uint64_t number)
{
    struct bus *bus = call->calls->bus;
    struct calls_identity identity = {
        .coordinator = bus->self,
        .deadline_ms = call->machine.deadline_ms,
        .epoch = bus_epoch(bus),
        .number = number,
        .principal = call->caller_name,
    };
    const struct calls_subject subject = calls_call_subject(call);

    memcpy(identity.digest, call->machine.digest, sizeof(identity.digest));
    return calls_identity_write(&identity, &subject);
}

bool calls_call_renew_identity(struct calls_call *call)
{
    peg__blob_unref(call->identity);
    call->identity = calls_call_make_identity(call, ++call->calls->n_tokens);
    return call->identity != NULL;
}

size_t calls_request_large_bytes(const struct calls_request *request)
{
    const size_t bytes = request->payload.len + request->packed.len;

    return bytes > PEG_LIMIT_GATEWAY_SMALL_REQUEST_BYTES ? bytes : 0;
}

peg_status calls_call_pack(struct calls_call *call, const struct calls_request *request)
{
    if (pack(call, request) || (calls_call_is_keyed(call) && !calls_call_renew_identity(call))) {
        call->request = peg__blob_unref(call->request);
        call->payload = call->caller_name = (peg_str){"", 0};
        return PEG_ENOMEM;
    }
    call->large_bytes = calls_request_large_bytes(request);
    if (call->large_bytes)
        peg__quota_add(&call->calls->quotas.large_bytes, call->account, call->large_bytes);
    return PEG_OK;
}

/* ---- deadlines ---- */

int64_t calls_give_up_ns(int64_t now_ns, int64_t deadline_ns)
{
    const int64_t least_ns = 1000000;
    const int64_t most_ns = 100000000;
    int64_t early_ns = (deadline_ns - now_ns) / 20;

    if (deadline_ns == NET_NEVER)
        return NET_NEVER;
    early_ns = early_ns < least_ns ? least_ns : early_ns;
    early_ns = early_ns > most_ns ? most_ns : early_ns;
    return deadline_ns - early_ns;
}

int64_t calls_request_deadline(struct calls_loop *calls, const struct calls_request *request,
                               const struct calls_tool *tool)
{
    const int64_t now_ns = bus_now_ns(calls->bus);
    const int64_t caller_ns = calls_give_up_ns(now_ns, request->deadline_ns);
    int64_t timeout_ms = request->timeout_ms;

    if (timeout_ms <= 0)
        timeout_ms = tool->timeout_ms;
    if (timeout_ms <= 0)
        timeout_ms = calls->options.call_timeout_ms;
    /* Who names a time means all of it; else the time for people comes on top. */
    if (request->can_be_asked && request->timeout_ms <= 0)
        timeout_ms += PEG_LIMIT_GATEWAY_ASK_MS;
    return caller_ns < now_ns + timeout_ms * 1000000 ? caller_ns : now_ns + timeout_ms * 1000000;
}

void calls_call_set_deadline(struct calls_call *call)
{
    struct bus *bus = call->calls->bus;

    call->machine.deadline_ms = bus_now_ms(bus) + (call->deadline_ns - bus_now_ns(bus)) / 1000000;
}
