/* SPDX-License-Identifier: Apache-2.0 */

/* What loops ask of the catalog. Only the asker's loop looks at `wait`: forgetting is clearing it.
 */

#include "base/error.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/internal.h"
#include "grpc/message.h"
#include "pegboard/v1/registry.pb-c.h"

static void arrive(struct net_message *message)
{
    struct gw_change *change = (struct gw_change *)message;
    struct gw_catalog *catalog = change->catalog;

    change_queue(catalog, change);
    if (catalog->is_stopping)
        change_cancel_all(catalog);
    else
        change_run_queue(catalog);
}

static void send_home(struct gw_change *change)
{
    change->message.fn = arrive;
    net_loop_post(change->catalog->home, &change->message);
}

/* Hangs the wait on the change; without a change it is answered now. */
static bool begin(struct gw_change *change, struct net_loop *loop, struct gw_change_wait *wait)
{
    peg_error error;

    if (change) {
        change->loop = loop;
        change->wait = wait;
        wait->pending = change;
        return true;
    }
    wait->pending = NULL;
    wait->fn(wait, peg__fail_nomem(&error), NULL, &error);
    return false;
}

/* ---- requests ----------------------------------------------------------------------------------
 */

/* On a worker. */
static void take_apart(struct net_work *work)
{
    struct gw_change *change = peg__container_of(work, struct gw_change, work);
    const struct gw_toolset_dates dates = {.owner = change->principal};
    const struct ProtobufCMessage *message;
    struct peg__arena arena = {0};

    change->status = grpc_message_unpack(&pegboard__v1__register_request__descriptor, &arena,
                                         peg__blob_str(change->request), &message, &change->error);
    if (!change->status)
        change->status = gw_toolset_make((const Pegboard__V1__RegisterRequest *)message, &dates,
                                         &change->toolset, &change->error);
    peg__arena_free(&arena);
}

static void on_apart(struct net_work *work, bool was_canceled)
{
    struct gw_change *change = peg__container_of(work, struct gw_change, work);

    change->request = peg__blob_unref(change->request);
    if (was_canceled)
        change->status = peg__fail(&change->error, PEG_ECANCELED, "E_CATALOG_ENDED",
                                   "the gateway is stopping: ask another one");
    if (change->status)
        change_answer(change);
    else
        send_home(change);
}

static struct peg__blob *pack(const Pegboard__V1__RegisterRequest *request)
{
    struct peg__blob *blob = peg__blob_new(grpc_message_packed_size(&request->base));

    if (blob)
        grpc_message_pack(&request->base, (uint8_t *)blob->bytes);
    return blob;
}

void gw_catalog_offer(struct gw_catalog *catalog, struct net_loop *loop,
                      const Pegboard__V1__RegisterRequest *request, peg_str principal,
                      bool has_live, struct gw_change_wait *wait)
{
    struct gw_change *change =
        change_new(catalog, GW_CHANGE_REGISTER, peg__str(request->name), principal);

    if (!begin(change, loop, wait))
        return;
    change->has_live = has_live;
    change->work.work = take_apart;
    change->work.done = on_apart;
    change->request = pack(request);
    if (change->request && net_loop_work(loop, &change->work) == PEG_OK)
        return;
    change->status = peg__fail_nomem(&change->error);
    change_answer(change);
}

void gw_catalog_register(struct gw_catalog *catalog, struct net_loop *loop,
                         struct gw_toolset *toolset, bool has_live, struct gw_change_wait *wait)
{
    struct gw_change *change =
        change_new(catalog, GW_CHANGE_REGISTER, toolset->name, toolset->owner);

    if (!change)
        gw_toolset_unref(toolset);
    if (!begin(change, loop, wait))
        return;
    change->has_live = has_live;
    change->toolset = toolset;
    send_home(change);
}

void gw_catalog_unregister(struct gw_catalog *catalog, struct net_loop *loop, peg_str name,
                           peg_str principal, struct gw_change_wait *wait)
{
    struct gw_change *change = change_new(catalog, GW_CHANGE_UNREGISTER, name, principal);

    if (begin(change, loop, wait))
        send_home(change);
}

void gw_change_forget(struct gw_change_wait *wait)
{
    struct gw_change *change = wait->pending;

    if (!change)
        return;
    change->wait = NULL;
    wait->pending = NULL;
}
