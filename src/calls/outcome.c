/* SPDX-License-Identifier: Apache-2.0 */

#include "calls/outcome.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "pegboard/v1/registry.fields.h"

/* The register's bytes: this head, the message, the response. */
struct head {
    uint8_t version;
    uint8_t kind;
    uint8_t error;
    uint8_t flags;
    uint32_t message_len;
    int64_t retry_after_ms;
};

enum { VERSION = 1 };

/* A gateway that does not know of stand-ins takes any flag for STARTED, which they have. */
enum { STARTED = 1, PLACEHOLDER = 2 };

struct peg__blob *calls_outcome_write(const struct calls_outcome *outcome)
{
    const struct head head = {
        .version = VERSION,
        .kind = (uint8_t)outcome->kind,
        .error = (uint8_t)outcome->error,
        .flags = (uint8_t)((outcome->was_started ? STARTED : 0) |
                           (outcome->is_placeholder ? PLACEHOLDER : 0)),
        .message_len = (uint32_t)outcome->message.len,
        .retry_after_ms = outcome->retry_after_ms,
    };
    const peg_str parts[] = {
        {(const char *)&head, sizeof(head)},
        outcome->message,
        outcome->response,
    };

    return peg__blob_join(parts, sizeof(parts) / sizeof(*parts));
}

/* The attempt in it makes it its writer's own. */
struct peg__blob *calls_outcome_placeholder(uint32_t attempt, size_t len, bool has_quotas)
{
    char text[512];
    const int n = snprintf(
        text, sizeof(text),
        "the tool has run (attempt %u), and the callers that waited know how it ended; its result "
        "of %zu bytes was not kept, because %s%s was reached: check before you retry with a new "
        "identity; ask for smaller results, or shorten --result-mapping-ttl",
        (unsigned)attempt, len,
        len > PEG_LIMIT_BUS_SMALL_BYTES ? "PEG_LIMIT_BUS_LARGE_BYTES"
                                        : "PEG_LIMIT_BUS_REGISTER_BYTES",
        has_quotas ? " or this principal's share of it (PEG_LIMIT_QUOTA_SHARE)" : "");
    const struct calls_outcome outcome = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .message = {text, (size_t)n},
        .was_started = true,
        .is_placeholder = true,
    };

    return calls_outcome_write(&outcome);
}

/* A tag and a length that takes four bytes, whatever it is: readers take both forms. */
static void put_result_head(uint8_t *at, size_t len)
{
    at[0] = PEGBOARD_V1_CALL_TOOL_RESPONSE_RESULT_FIELD << 3 | 2;
    at[1] = (uint8_t)(len | 0x80);
    at[2] = (uint8_t)(len >> 7 | 0x80);
    at[3] = (uint8_t)(len >> 14 | 0x80);
    at[4] = (uint8_t)(len >> 21);
}

struct peg__blob *calls_outcome_of_result(struct peg__buf *bytes, size_t result_len)
{
    const struct head head = {.version = VERSION, .kind = CALLS_KIND_RESULT, .flags = STARTED};
    struct peg__blob *blob = peg__blob_take(bytes);

    _Static_assert(CALLS_OUTCOME_CAPACITY ==
                       PEG__BLOB_CAPACITY + sizeof(head) + CALLS_OUTCOME_RESULT,
                   "what is put before it");
    _Static_assert(PEG_LIMIT_GATEWAY_RESULT_BYTES < 1 << 28, "what four bytes can tell");
    if (blob) {
        memcpy(blob->bytes, &head, sizeof(head));
        put_result_head((uint8_t *)blob->bytes + sizeof(head), result_len);
    }
    return blob;
}

bool calls_outcome_read(const struct peg__blob *blob, struct calls_outcome *ret_outcome)
{
    struct head head;

    if (!blob || blob->len < sizeof(head))
        return false;
    memcpy(&head, blob->bytes, sizeof(head));
    if (head.version != VERSION || head.kind >= CALLS_KIND_REFUSED ||
        head.error >= CALLS_N_ERRORS || head.message_len > blob->len - sizeof(head))
        return false;
    *ret_outcome = (struct calls_outcome){
        .kind = (enum calls_outcome_kind)head.kind,
        .error = (enum calls_error)head.error,
        .message = {blob->bytes + sizeof(head), head.message_len},
        .was_started = head.flags != 0,
        .is_placeholder = head.flags & PLACEHOLDER,
        .retry_after_ms = head.retry_after_ms,
        .response = {blob->bytes + sizeof(head) + head.message_len,
                     blob->len - sizeof(head) - head.message_len},
        .blob = (struct peg__blob *)peg__unconst(blob),
    };
    return true;
}
