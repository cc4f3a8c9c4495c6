/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GET /v1/watch: each message of Watch is an event, named for its kind, with its place as its id.
 * A client that comes back with Last-Event-ID gets what it missed, or `lost` and all that is there
 * again.
 */

#include "base/text/str.h"
#include "gateway/http/internal.h"
#include "pegboard/v1/registry.grpc.h"

static const char *const kinds[] = {
    [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_PRESENT] = "present",
    [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_READY] = "ready",
    [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_REGISTERED] = "registered",
    [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_CHANGED] = "changed",
    [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_UNREGISTERED] = "unregistered",
    [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_HEALTH] = "health",
    [PEGBOARD__V1__WATCH_RESPONSE__KIND__KIND_LOST] = "lost",
};

static peg_status send_change_event(struct gw_exchange *exchange, const ProtobufCMessage *message,
                                    peg_str packed)
{
    struct peg__arena arena = {0};
    const Pegboard__V1__WatchResponse *response =
        (const Pegboard__V1__WatchResponse *)gw_exchange_unpack(exchange, packed, &arena);
    const unsigned kind = response ? (unsigned)response->kind : 0;
    const bool is_known = kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[kind];
    peg_status status = PEG_ENOMEM;

    (void)message;
    if (response && is_known) {
        if (response->toolset)
            gw_message_write(&exchange->out, &response->toolset->base);
        else
            peg__out_raw(&exchange->out, peg__str("{}"));
        status = gw_exchange_send_event(exchange, kinds[kind],
                                        response->event_id[0] ? response->event_id : NULL);
    }
    peg__arena_free(&arena);
    return status;
}

static const struct gw_operation watch_operation = {
    .rpc = "/pegboard.v1.Registry/Watch",
    .take = send_change_event,
    .done = gw_exchange_end_events,
};

static void api_watch_catalog(struct net_http_request *request, peg_str body, void *node)
{
    struct gw_exchange *exchange = gw_exchange_new(request, node, sizeof(*exchange));
    Pegboard__V1__WatchRequest *watch =
        exchange ? gw_exchange_message(exchange, &pegboard__v1__watch_request__descriptor) : NULL;

    (void)body;
    if (watch)
        watch->resume_after =
            peg__arena_copy(request->arena, net_http_field(request, "last-event-id"));
    if (watch && !watch->resume_after)
        net_http_reset(request);
    else if (watch && gw_exchange_query_tags(exchange, &watch->tags, &watch->n_tags))
        gw_exchange_call(exchange, &watch_operation, &watch->base);
}

const struct net_http_handler gw_api_watch = GW_API_READS(api_watch_catalog);
