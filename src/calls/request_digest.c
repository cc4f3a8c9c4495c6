/* SPDX-License-Identifier: Apache-2.0 */

/* What is asked for under an identity: asking for something else is a mistake of the caller's.
 * Payloads that differ in white space alone ask for the same. They are not parsed for this: large
 * ones are not read on the loop, and one that only joins a call is not read at all. */

#include <stdint.h>
#include <string.h>

#include "base/hash.h"
#include "base/text/str.h"
#include "calls/call.h"

/* What does not fit any more is replaced by its digest, so that nothing needs memory. */
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
    if (!add_compact(&block, request->payload.len ? request->payload : (peg_str)PEG_LIT("{}")) ||
        !fold(&block))
        return false;
    memcpy(ret_digest, block.bytes, PEG_SHA256_BYTES);
    return true;
}
