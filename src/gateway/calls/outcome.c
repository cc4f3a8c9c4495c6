/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/calls/outcome.h"

#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "pegboard/v1/registry.fields.h"

/* The register's bytes: this head, the message, the response. */
struct head {
    uint8_t version;
    uint8_t outcome;
    uint8_t error;
    uint8_t flags;
    uint32_t message_len;
    int64_t retry_after_ms;
};

enum { VERSION = 1 };

/* A gateway that does not know of stand-ins takes any flag for STARTED, which they have. */
enum { STARTED = 1, STAND_IN = 2 };

struct peg__blob *gw_outcome_write(const struct gw_outcome *terminal)
{
    const struct head head = {
        .version = VERSION,
        .outcome = (uint8_t)terminal->outcome,
        .error = (uint8_t)terminal->error,
        .flags = (uint8_t)((terminal->was_started ? STARTED : 0) |
                           (terminal->is_stand_in ? STAND_IN : 0)),
        .message_len = (uint32_t)terminal->message.len,
        .retry_after_ms = terminal->retry_after_ms,
    };
    struct peg__blob *blob =
        peg__blob_new(sizeof(head) + terminal->message.len + terminal->response.len);

    if (!blob)
        return NULL;
    memcpy(blob->bytes, &head, sizeof(head));
    if (terminal->message.len)
        memcpy(blob->bytes + sizeof(head), terminal->message.ptr, terminal->message.len);
    if (terminal->response.len)
        memcpy(blob->bytes + sizeof(head) + terminal->message.len, terminal->response.ptr,
               terminal->response.len);
    return blob;
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

struct peg__blob *gw_outcome_of_result(struct peg__buf *bytes, size_t result_len)
{
    const struct head head = {.version = VERSION, .outcome = GW_RESULT, .flags = STARTED};
    struct peg__blob *blob = peg__blob_take(bytes);

    _Static_assert(GW_OUTCOME_CAPACITY == PEG__BLOB_CAPACITY + sizeof(head) + GW_OUTCOME_RESULT,
                   "what is put before it");
    _Static_assert(PEG_LIMIT_GATEWAY_RESULT_BYTES < 1 << 28, "what four bytes can tell");
    if (blob) {
        memcpy(blob->bytes, &head, sizeof(head));
        put_result_head((uint8_t *)blob->bytes + sizeof(head), result_len);
    }
    return blob;
}

bool gw_outcome_read(const struct peg__blob *blob, struct gw_outcome *ret_terminal)
{
    struct head head;

    if (!blob || blob->len < sizeof(head))
        return false;
    memcpy(&head, blob->bytes, sizeof(head));
    if (head.version != VERSION || head.outcome >= GW_REFUSED || head.error >= WIRE_N_ERRORS ||
        head.message_len > blob->len - sizeof(head))
        return false;
    *ret_terminal = (struct gw_outcome){
        .outcome = (enum gw_outcome_kind)head.outcome,
        .error = (enum wire_error)head.error,
        .message = {blob->bytes + sizeof(head), head.message_len},
        .was_started = head.flags != 0,
        .is_stand_in = head.flags & STAND_IN,
        .retry_after_ms = head.retry_after_ms,
        .response = {blob->bytes + sizeof(head) + head.message_len,
                     blob->len - sizeof(head) - head.message_len},
        .blob = (struct peg__blob *)peg__unconst(blob),
    };
    return true;
}
