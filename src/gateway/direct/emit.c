/* SPDX-License-Identifier: Apache-2.0 */

/*
 * EmitToolResult on any node: the mapping says which stream the result belongs on, and the
 * node that waits for it reads it there.
 *
 *   GET registry:result-stream:<id> -> XADD ... NOMKSTREAM
 */

#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/direct/internal.h"

struct direct_emission {
    struct bus_stream_wait stream; /* first */
    struct gw_direct *direct;
    struct direct_emission *next;
    struct direct_emission *prev;
    struct gw_direct_emission *asker; /* NULL: it does not wait any more */
    struct peg__blob *text;
};

static void free_emission(struct direct_emission *emission)
{
    struct gw_direct *direct = emission->direct;

    bus_forget_wait(direct->bus, &emission->stream.wait);
    PEG_LIST_REMOVE(direct->emissions, emission, next, prev);
    if (emission->asker)
        emission->asker->pending = NULL;
    peg__blob_unref(emission->text);
    peg__free(emission);
}

static void answer(struct direct_emission *emission, peg_status status)
{
    struct gw_direct_emission *asker = emission->asker;
    enum calls_error error = CALLS_OK;
    const char *words = "";

    if (status == PEG_ENOTFOUND) {
        error = CALLS_NOT_FOUND;
        words = "there is no such call (any more): it has ended, or its deadline has passed";
    } else if (status) {
        error = CALLS_OVERLOADED;
        words = "Redis has not taken the result, or has not said so: send it again";
    }
    free_emission(emission);
    if (asker)
        asker->fn(asker, error, words);
}

static void on_added(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    answer((struct direct_emission *)wait, reply->status);
}

static void on_mapping(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    struct direct_emission *emission = (struct direct_emission *)wait;
    char key[PULSE_NAME];
    struct bus_stream_add add = {.name = PEG_LIT("result")};

    if (reply->status) {
        answer(emission, reply->status);
        return;
    }
    add.key = peg__str_starts(reply->text, peg__str("result:")) ? pulse_stream_key(reply->text, key)
                                                                : (peg_str){"", 0};
    if (!add.key.len) {
        answer(emission, PEG_ENOTFOUND); /* a mapping of others */
        return;
    }
    add.payload = peg__blob_str(emission->text);
    emission->stream.fn = on_added;
    bus_stream_add(emission->direct->bus, &add, &emission->stream);
}

static struct peg__blob *write_result(struct gw_direct *direct,
                                      const struct gw_direct_emitted *emitted)
{
    const struct pulse_entry entry = {.event = PULSE_RESULT,
                                      .result = {
                                          .tool_use_id = emitted->call_id,
                                          .is_failure = emitted->is_failure,
                                          .json = emitted->result,
                                          .server_data = emitted->server_data,
                                          .code = emitted->code,
                                          .message = emitted->message,
                                      }};

    peg__buf_clear(&direct->text);
    pulse_entry_write(&entry, &direct->text);
    return direct->text.status ? NULL : peg__blob_copy(peg__buf_view(&direct->text));
}

void gw_direct_emit(struct gw_direct *direct, const struct gw_direct_emitted *emitted,
                    struct gw_direct_emission *asker)
{
    struct direct_emission *emission =
        (struct direct_emission *)peg__alloc_zero(1, sizeof(*emission));
    char key[PULSE_NAME];

    if (emission)
        emission->text = write_result(direct, emitted);
    if (!emission || !emission->text) {
        peg__free(emission);
        asker->fn(asker, CALLS_OVERLOADED,
                  "the gateway is out of memory, or the result is too large: send it again");
        return;
    }
    emission->direct = direct;
    emission->stream.fn = on_mapping;
    emission->asker = asker;
    asker->pending = emission;
    PEG_LIST_PUSH(direct->emissions, emission, next, prev);
    bus_key_get(direct->bus, pulse_mapping_key(emitted->call_id, key), &emission->stream);
}

/* It is added all the same. */
void gw_direct_forget_emission(struct gw_direct_emission *asker)
{
    struct direct_emission *emission = (struct direct_emission *)asker->pending;

    if (emission)
        emission->asker = NULL;
    asker->pending = NULL;
}

void direct_drop_emissions(struct gw_direct *direct)
{
    while (direct->emissions)
        free_emission(direct->emissions);
}
