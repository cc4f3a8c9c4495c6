/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/rpc/answer.h"

#include <stdio.h>
#include <string.h>

#include "base/text/str.h"
#include "bus/bus.h"
#include "gateway/access/principal.h"
#include "gateway/catalog/toolset.h"
#include "gateway/telemetry/event_log.h"

void gw_fail(struct grpc_call *call, enum wire_error error, peg_str message)
{
    struct grpc_status status;

    wire_error_status(error, message, grpc_call_max_status_bytes(call), grpc_call_arena(call),
                      &status);
    grpc_call_finish(call, &status);
}

void gw_report_refused(struct gw_event_log *journal, const struct grpc_call *call,
                       enum wire_error error, peg_str toolset)
{
    struct gw_field fields[5];
    size_t n = 0;

    fields[n++] = gw_field_text("error", wire_error_name(error));
    fields[n++] = gw_field_text("rpc", grpc_call_method(call)->path);
    if (toolset.len)
        fields[n++] = gw_field_str("toolset", toolset);
    fields[n++] = gw_field_str("principal", gw_call_principal(call)->name);
    fields[n++] = gw_field_text("peer", grpc_call_peer(call));
    gw_event_log_write(journal, PEG_LOG_WARN, GW_EVENT_REFUSED, fields, n);
}

/* The code is the same, but who is over a limit will be again, and memory comes back. */
static bool is_about_memory(const struct grpc_status *status)
{
    static const char words[] = "out of memory";

    return status->message.len &&
           memmem(status->message.ptr, status->message.len, words, sizeof(words) - 1);
}

static void name_refusal(struct grpc_call *call, enum wire_error error, struct grpc_status *status)
{
    wire_error_status(error, status->message, grpc_call_max_status_bytes(call),
                      grpc_call_arena(call), status);
}

/* Requests that cannot be read, or are too large: a client that goes by names hears one, too. gRPC
 * calls a message that is none an internal error, which here would be the gateway's own mistake.
 * Whoever looks for a method that is not there, or for health, expects what every gRPC server
 * says. */
void gw_describe(struct grpc_call *call, struct grpc_status *status)
{
    const struct grpc_method *method = grpc_call_method(call);

    if (method && peg__str_starts(peg__str(method->path), peg__str("/grpc.")))
        return;
    switch (status->code) {
    case GRPC_INTERNAL:
    case GRPC_INVALID_ARGUMENT:
        name_refusal(call, WIRE_VALIDATION, status);
        return;
    case GRPC_RESOURCE_EXHAUSTED:
        name_refusal(call, is_about_memory(status) ? WIRE_OVERLOADED : WIRE_LIMIT, status);
        return;
    default:
        return;
    }
}

void gw_fail_because(struct grpc_call *call, const peg_error *error)
{
    gw_fail(call, gw_wire_error(error), peg__str(error->message));
}

/* A trailer that there is no memory for is left out. */
static void add_trailer(struct grpc_call *call, const char *key, const char *value)
{
    (void)grpc_call_add_trailer(call, peg__str(key), peg__str(value), NULL);
}

void gw_fail_outcome(struct grpc_call *call, const struct gw_outcome *terminal,
                     const struct bus_id *id)
{
    char text[BUS_ID_TEXT];

    /* A wait that is over ends no call: it can be awaited again. What is not found cannot. */
    if (id && (terminal->outcome != GW_REFUSED || terminal->was_started) &&
        terminal->error != WIRE_NOT_FOUND) {
        bus_id_print(id, text);
        add_trailer(call, "pegboard-call-id", text);
    }
    add_trailer(call, "pegboard-started", terminal->was_started ? "true" : "false");
    if (terminal->retry_after_ms) {
        snprintf(text, sizeof(text), "%lld", (long long)terminal->retry_after_ms);
        add_trailer(call, "pegboard-retry-after-ms", text);
    }
    gw_fail(call, terminal->error, terminal->message);
}

void gw_fail_report(struct grpc_call *call, const struct bus_id *id)
{
    const struct gw_outcome untold = {
        .outcome = GW_OUTCOME_UNKNOWN,
        .error = WIRE_OUTCOME_UNKNOWN,
        .message = PEG_LIT("the call has ended, and the gateway cannot send how: too much waits on "
                           "this connection (PEG_LIMIT_GRPC_HELD_BYTES = 64 MiB), or there is no "
                           "memory; ask again with its identity, or, if it has none, look at its "
                           "effect before you repeat it"),
        .was_started = true,
    };

    gw_fail_outcome(call, &untold, id);
}

/* Without memory it is left out: whoever does not know it says so. */
void gw_report_epoch(struct grpc_call *call, const struct gw_calls *desk)
{
    char text[GW_EPOCH_TEXT];

    gw_calls_epoch(desk, text);
    (void)grpc_call_add_header(call, peg__str("pegboard-epoch"), peg__str(text), NULL);
}

bool gw_was_asked_elsewhere(struct grpc_call *call, const struct gw_calls *desk)
{
    const peg_str told = grpc_metadata_get(grpc_call_metadata(call), "pegboard-asked-epoch");
    char text[GW_EPOCH_TEXT];

    if (!told.len)
        return false;
    gw_calls_epoch(desk, text);
    return !peg__str_is(told, text);
}
