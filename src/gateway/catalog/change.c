/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One change at a time: it is decided, written into the store by a worker, then into the map. The
 * map's watch makes it visible; the next snapshot takes it to the loops, and then the asker gets
 * its answer. If the map does not take it the store gets back what was there before.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/internal.h"
#include "grpc/message.h"
#include "pegboard/v1/registry.pb-c.h"

enum { MAX_JSON = 8 * PEG_LIMIT_GATEWAY_TOOLSET_BYTES };

/* ---- changes ---- */

struct gw_change *change_new(struct gw_catalog *catalog, enum gw_change_kind kind, peg_str name,
                             peg_str principal)
{
    struct gw_change *change = peg__alloc_zero(1, sizeof(*change) + name.len + principal.len + 2);

    if (!change)
        return NULL;
    change->catalog = catalog_ref(catalog);
    change->kind = kind;
    change->name = peg__strn(change->text, name.len);
    change->principal = peg__strn(change->text + name.len + 1, principal.len);
    if (name.len)
        memcpy(change->text, name.ptr, name.len);
    if (principal.len)
        memcpy(change->text + name.len + 1, principal.ptr, principal.len);
    return change;
}

static void change_free(struct gw_change *change)
{
    peg__blob_unref(change->request);
    peg__blob_unref(change->value);
    gw_toolset_unref(change->toolset);
    catalog_unref(change->catalog);
    peg__free(change);
}

static void deliver_answer(struct net_message *message)
{
    struct gw_change *change = (struct gw_change *)message;
    struct gw_change_wait *wait = change->wait;

    if (wait) {
        wait->pending = NULL;
        wait->fn(wait, change->status, change->status ? NULL : change->toolset, &change->error);
    }
    change_free(change);
}

void change_answer(struct gw_change *change)
{
    if (!change->loop) {
        change_free(change);
        return;
    }
    change->message.fn = deliver_answer;
    net_loop_post(change->loop, &change->message);
}

static peg_status fail_canceled(struct gw_change *change)
{
    return peg__fail(&change->error, PEG_ECANCELED, "E_GATEWAY",
                     "the gateway is stopping: ask another one");
}

/* ---- the end of one ---- */

static bool is_unused(const struct gw_record *record)
{
    return !record->toolset && !record->revision && !record->stored && !record->map_revision &&
           !record->is_unreadable && !record->is_queued;
}

static void finish_change(struct gw_catalog *catalog, struct gw_change *change, peg_status status)
{
    struct gw_record *record = record_find(catalog, change->name);

    if (record && (change->kind == GW_CHANGE_SEED || change->kind == GW_CHANGE_MIRROR))
        record->is_queued = false;
    if (record && status && is_unused(record))
        record_remove(catalog, record); /* refusals leave nothing behind */
    catalog->current = NULL;
    change->status = status;
    change->next = NULL;
    if (change->loop) {
        *catalog->written_end = change;
        catalog->written_end = &change->next;
        catalog_publish(catalog);
    } else {
        change_free(change);
    }
}

static void finish_canceled(struct gw_catalog *catalog, struct gw_change *change)
{
    finish_change(catalog, change, fail_canceled(change));
}

static void finish_nomem(struct gw_catalog *catalog, struct gw_change *change)
{
    finish_change(catalog, change, peg__fail_nomem(&change->error));
}

/* ---- the map ---- */

static void decide(struct gw_catalog *catalog, struct gw_change *change);
static void write_store(struct gw_catalog *catalog, struct gw_change *change);

static void fail_map(struct gw_change *change, const struct bus_answer *answer)
{
    if (answer->status == PEG_ELIMIT)
        change->status = peg__fail(&change->error, PEG_ELIMIT, "E_TOOLSETS",
                                   "the map of toolsets is full: unregister toolsets");
    else if (answer->status == PEG_ENOMEM)
        change->status = peg__fail_nomem(&change->error);
    else
        change->status = peg__fail(&change->error, PEG_EIO, "E_GATEWAY",
                                   "the change of toolset \"%s\" did not reach all loops: "
                                   "try again",
                                   change->text);
}

static void on_mapped(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_catalog *catalog = peg__container_of(wait, struct gw_catalog, wait);
    struct gw_change *change = catalog->current;
    const bool was_asked = change->loop != NULL;

    if (catalog->is_stopping) {
        finish_canceled(catalog, change);
    } else if (!answer->status && answer->written) {
        finish_change(catalog, change, PEG_OK);
    } else if (!answer->status && change->n_tries++ < GW_CATALOG_TRIES) {
        decide(catalog, change); /* another node was quicker: what it wrote is known by now */
    } else if (was_asked) {
        fail_map(change, answer);
        change->is_undoing = true;
        write_store(catalog, change);
    } else {
        catalog_try_again(catalog, false);
        finish_change(catalog, change, PEG_EIO);
    }
    change_run_queue(catalog);
}

static void write_map(struct gw_catalog *catalog, struct gw_change *change)
{
    const struct gw_record *record = record_find(catalog, change->name);

    bus_map_set(catalog->bus, BUS_MAP_TOOLSETS, change->name, change->value,
                record ? record->map_revision : 0, &catalog->wait);
}

/* ---- the store ---- */

static peg_status put_record(const peg_store *store, struct gw_change *change)
{
    struct peg__buf body = PEG__BUF(MAX_JSON);
    peg_store_record record = {.name = change->name,
                               .revision = change->revision,
                               .at_ms = change->at_ms,
                               .is_removed = !change->toolset};
    peg_error *error = change->is_undoing ? NULL : &change->error;
    peg_status status = PEG_OK;

    if (change->toolset)
        status = gw_toolset_write(change->toolset, &body, error);
    record.body = peg__buf_view(&body);
    if (!status)
        status = store->put(store->self, &record, error);
    peg__buf_free(&body);
    return status;
}

static peg_status fail_quota(struct gw_change *change, const char *what)
{
    return peg__fail(
        &change->error, PEG_ELIMIT, "E_TOOLSETS",
        "quota exceeded: too many %s of %.*s; unregister toolsets, or wait until names "
        "that ended are forgotten",
        what, (int)(change->principal.len < 128 ? change->principal.len : 128),
        change->principal.ptr);
}

/* Of the map: what a toolset grows by. On a worker. */
static peg_status check_bytes(struct gw_catalog *catalog, struct gw_change *change)
{
    const size_t n = change->value->len;
    const uint16_t quota_key = record_quota_key(catalog, change->principal);

    change->toolset->stored_bytes = n;
    if (n <= change->old_bytes ||
        peg__quota_has(&catalog->n_bytes, quota_key, n - change->old_bytes, PEG__QUOTA_BEGIN))
        return PEG_OK;
    return fail_quota(change, "bytes of toolsets");
}

/* On a worker; `current` is left alone meanwhile. */
static void write_on_worker(struct net_work *net_work)
{
    struct gw_catalog *catalog = peg__container_of(net_work, struct gw_catalog, work);
    struct gw_change *change = catalog->current;
    peg_status status;

    if (change->kind == GW_CHANGE_FORGET) {
        (void)catalog->store.forget(catalog->store.self, change->at_ms, NULL);
        return;
    }
    if (!change->is_undoing) {
        peg__blob_unref(change->value);
        change->value = record_value(change->toolset, change->revision, change->at_ms);
        if (!change->value) {
            change->status = peg__fail_nomem(&change->error);
            return;
        }
        if (change->kind == GW_CHANGE_REGISTER && (change->status = check_bytes(catalog, change)))
            return;
    }
    status = put_record(&catalog->store, change);
    if (!change->is_undoing)
        change->status = status;
}

/* To the asker and to the log: the asker cannot see to the disk, the operator did not ask. */
static void report_store_failure(struct gw_change *change)
{
    const peg_error why = change->error;

    if (change->status == PEG_ENOMEM || strcmp(why.code, "E_TOOLSETS") == 0)
        return;
    peg__log(PEG_LOG_ERROR, "store_failed", "toolset \"%s\" is not in the store: %s", change->text,
             why.message);
    change->status = peg__fail_because(&change->error, PEG_EIO, "E_STORE", &why,
                                       "toolset \"%s\" could not be written to the store, and is "
                                       "as it was",
                                       change->text);
}

static bool is_superseded(const struct gw_change *change)
{
    return change->status == PEG_ESTATE && strcmp(change->error.code, "E_STORE_REVISION") == 0;
}

static void note_stored(struct gw_record *record, const struct gw_change *change)
{
    if (record && record->stored < change->revision)
        record->stored = change->revision;
}

/* Nodes that share a store all write there what the map told them: the first is enough. A change
 * that somebody asked for gets a greater revision; if another node changed the same toolset at the
 * same time, the map decides which of them is later. */
static void follow_store(struct gw_catalog *catalog, struct gw_change *change)
{
    note_stored(record_find(catalog, change->name), change);
    change->status = PEG_OK;
    if (change->kind == GW_CHANGE_MIRROR)
        finish_change(catalog, change, PEG_OK);
    else
        decide(catalog, change);
}

static bool may_follow_store(struct gw_catalog *catalog, struct gw_change *change)
{
    return is_superseded(change) &&
           (change->kind == GW_CHANGE_MIRROR ||
            (!catalog->is_stopping && change->n_tries++ < GW_CATALOG_TRIES));
}

static void continue_change(struct gw_catalog *catalog, struct gw_change *change, bool was_canceled)
{
    struct gw_record *record = record_find(catalog, change->name);

    if (was_canceled) {
        finish_canceled(catalog, change);
    } else if (change->is_undoing || change->kind == GW_CHANGE_FORGET) {
        finish_change(catalog, change, change->status);
    } else if (may_follow_store(catalog, change)) {
        follow_store(catalog, change);
    } else if (change->status) {
        report_store_failure(change);
        finish_change(catalog, change, change->status);
    } else {
        note_stored(record, change);
        if (change->kind == GW_CHANGE_MIRROR || catalog->is_stopping)
            finish_change(catalog, change, PEG_OK);
        else
            write_map(catalog, change);
    }
}

static void on_stored(struct net_work *net_work, bool was_canceled)
{
    struct gw_catalog *catalog = peg__container_of(net_work, struct gw_catalog, work);

    catalog->is_working = false;
    continue_change(catalog, catalog->current, was_canceled);
    change_run_queue(catalog);
}

/* What was there before, with a revision that counts more than what it takes back. */
static void prepare_undo(struct gw_catalog *catalog, struct gw_change *change)
{
    struct gw_record *record = record_find(catalog, change->name);

    gw_toolset_unref(change->toolset);
    change->toolset = record ? gw_toolset_ref(record->toolset) : NULL;
    change->revision++;
    if (record)
        record->stored = change->revision;
}

static void write_store(struct gw_catalog *catalog, struct gw_change *change)
{
    if (change->is_undoing)
        prepare_undo(catalog, change);
    catalog->is_working = true;
    if (net_loop_work(catalog->home, &catalog->work) == PEG_OK)
        return;
    catalog->is_working = false;
    finish_nomem(catalog, change);
}

/* ---- deciding ---- */

/* Greater than all that is known of the name; time makes it greater than what was forgotten. */
static void date(struct gw_catalog *catalog, const struct gw_record *record,
                 struct gw_change *change)
{
    uint64_t revision = (uint64_t)(change->at_ms = bus_now_ms(catalog->bus));

    if (revision <= record->revision)
        revision = record->revision + 1;
    if (revision <= record->stored)
        revision = record->stored + 1;
    change->revision = revision;
}

static peg_status check_change_owner(const struct gw_record *record, const struct gw_change *change,
                                     peg_error *reterr)
{
    const bool is_operator =
        change->kind == GW_CHANGE_UNREGISTER && change->principal.len == GW_ANY_OWNER.len;

    if (is_operator || peg__str_eq(record->toolset->owner, change->principal))
        return PEG_OK;
    return peg__fail(reterr, PEG_EEXISTS, "E_NOT_OWNER",
                     "toolset \"%s\" was registered by another principal: only that one may "
                     "change it; use another name",
                     change->text);
}

static peg_status check_change_kind(const struct gw_record *record, const struct gw_change *change,
                                    peg_error *reterr)
{
    if (record->toolset->kind == change->toolset->kind || !change->has_live)
        return PEG_OK;
    return peg__fail(reterr, PEG_ESTATE, "E_TOOLSET_KIND",
                     "toolset \"%s\" has live providers that are %s: stop them before it becomes "
                     "%s",
                     change->text, record->toolset->kind == GW_DIRECT ? "direct" : "attached",
                     change->toolset->kind == GW_DIRECT ? "direct" : "attached");
}

/* One more toolset, and perhaps one more name. What stands may always be changed. */
static peg_status check_quota(struct gw_catalog *catalog, struct gw_change *change,
                              const struct gw_record *known)
{
    const uint16_t quota_key = record_quota_key(catalog, change->principal);

    change->old_bytes = known ? known->n_bytes : 0;
    if (known && known->toolset)
        return PEG_OK;
    if (!peg__quota_has(&catalog->n_toolsets, quota_key, 1, PEG__QUOTA_BEGIN))
        return fail_quota(change, "toolsets");
    if ((!known || known->quota_key != quota_key) &&
        !peg__quota_has(&catalog->n_records, quota_key, 1, PEG__QUOTA_BEGIN))
        return fail_quota(change, "names of toolsets");
    return PEG_OK;
}

static peg_status check_capacity(struct gw_catalog *catalog, struct gw_change *change,
                                 struct gw_record **ret_record)
{
    const struct gw_record *known = record_find(catalog, change->name);
    peg_status status = check_quota(catalog, change, known);

    if (status)
        return status;
    status = PEG_ELIMIT;
    if ((known && known->toolset) || catalog->n < PEG_LIMIT_GATEWAY_TOOLSETS)
        status = record_get(catalog, change->name, ret_record);
    if (!status)
        status = record_reserve(catalog);
    if (status == PEG_ELIMIT)
        return peg__fail(&change->error, PEG_ELIMIT, "E_TOOLSETS",
                         "the gateway has too many toolsets: unregister some");
    return status ? peg__fail_nomem(&change->error) : PEG_OK;
}

static void decide_register(struct gw_catalog *catalog, struct gw_change *change)
{
    struct gw_record *record = NULL;
    peg_status status = check_capacity(catalog, change, &record);
    struct gw_toolset *standing = record ? record->toolset : NULL;

    if (standing)
        status = check_change_owner(record, change, &change->error);
    if (standing && !status)
        status = check_change_kind(record, change, &change->error);
    if (status || !record) {
        finish_change(catalog, change, status);
        return;
    }
    if (standing &&
        memcmp(standing->digest, change->toolset->digest, sizeof(standing->digest)) == 0) {
        gw_toolset_unref(change->toolset);
        change->toolset = gw_toolset_ref(standing);
        finish_change(catalog, change, PEG_OK);
        return;
    }
    date(catalog, record, change);
    change->toolset->revision = change->revision;
    change->toolset->registered_at_ms = change->at_ms;
    write_store(catalog, change);
}

static void decide_unregister(struct gw_catalog *catalog, struct gw_change *change)
{
    const struct gw_record *record = record_find(catalog, change->name);
    peg_status status;

    if (!record || !record->toolset) {
        finish_change(catalog, change,
                      peg__fail(&change->error, PEG_ENOTFOUND, "E_TOOLSET",
                                "toolset \"%s\" not found", change->text));
        return;
    }
    status = check_change_owner(record, change, &change->error);
    if (status) {
        finish_change(catalog, change, status);
        return;
    }
    date(catalog, record, change);
    write_store(catalog, change);
}

/* What the record says, for the map or for the store. */
static void decide_repair(struct gw_catalog *catalog, struct gw_change *change)
{
    const struct gw_record *record = record_find(catalog, change->name);

    if (!record || record->revision == 0) {
        finish_change(catalog, change, PEG_OK);
        return;
    }
    gw_toolset_unref(change->toolset);
    change->toolset = gw_toolset_ref(record->toolset);
    change->revision = record->revision;
    change->at_ms = record->at_ms;
    if (change->kind == GW_CHANGE_MIRROR) {
        write_store(catalog, change);
        return;
    }
    peg__blob_unref(change->value);
    change->value = record_value(change->toolset, change->revision, change->at_ms);
    if (change->value) {
        write_map(catalog, change);
    } else {
        catalog_try_again(catalog, false);
        finish_nomem(catalog, change);
    }
}

static void decide(struct gw_catalog *catalog, struct gw_change *change)
{
    switch (change->kind) {
    case GW_CHANGE_REGISTER:
        decide_register(catalog, change);
        return;
    case GW_CHANGE_UNREGISTER:
        decide_unregister(catalog, change);
        return;
    case GW_CHANGE_SEED:
    case GW_CHANGE_MIRROR:
        decide_repair(catalog, change);
        return;
    case GW_CHANGE_FORGET:
        write_store(catalog, change);
        return;
    }
}

/* ---- the queue ---- */

void change_queue(struct gw_catalog *catalog, struct gw_change *change)
{
    change->next = NULL;
    *catalog->queue_end = change;
    catalog->queue_end = &change->next;
}

static struct gw_change *take_next_change(struct gw_catalog *catalog)
{
    struct gw_change *change = catalog->queue;

    catalog->queue = change->next;
    if (!catalog->queue)
        catalog->queue_end = &catalog->queue;
    change->next = NULL;
    return change;
}

/* Answers may come at once: then the loop below goes on, and nothing calls itself. */
void change_run_queue(struct gw_catalog *catalog)
{
    if (catalog->is_running)
        return;
    catalog->is_running = true;
    while (catalog->is_ready && !catalog->current && catalog->queue && !catalog->is_stopping) {
        catalog->current = take_next_change(catalog);
        decide(catalog, catalog->current);
    }
    catalog->is_running = false;
    if (!catalog->current)
        catalog_publish(catalog);
    catalog_check_stopped(catalog);
}

void change_cancel_all(struct gw_catalog *catalog)
{
    while (catalog->queue) {
        struct gw_change *change = take_next_change(catalog);

        change->status = fail_canceled(change);
        change_answer(change);
    }
}

void change_init(struct gw_catalog *catalog)
{
    catalog->queue_end = &catalog->queue;
    catalog->written_end = &catalog->written;
    catalog->work.work = write_on_worker;
    catalog->work.done = on_stored;
    catalog->wait.fn = on_mapped;
}

/* ---- requests of loops. Only the asker's loop reads `wait`: forgetting is clearing it ---- */

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
static bool begin_change(struct gw_change *change, struct net_loop *loop,
                         struct gw_change_wait *wait)
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

/* ---- requests ---- */

/* On a worker. */
static void parse_registration(struct net_work *work)
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

static void on_parsed(struct net_work *work, bool was_canceled)
{
    struct gw_change *change = peg__container_of(work, struct gw_change, work);

    change->request = peg__blob_unref(change->request);
    if (was_canceled)
        change->status = peg__fail(&change->error, PEG_ECANCELED, "E_GATEWAY",
                                   "the gateway is stopping: ask another one");
    if (change->status)
        change_answer(change);
    else
        send_home(change);
}

static struct peg__blob *pack_registration(const Pegboard__V1__RegisterRequest *request)
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

    if (!begin_change(change, loop, wait))
        return;
    change->has_live = has_live;
    change->work.work = parse_registration;
    change->work.done = on_parsed;
    change->request = pack_registration(request);
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
    if (!begin_change(change, loop, wait))
        return;
    change->has_live = has_live;
    change->toolset = toolset;
    send_home(change);
}

void gw_catalog_unregister(struct gw_catalog *catalog, struct net_loop *loop, peg_str name,
                           peg_str principal, struct gw_change_wait *wait)
{
    struct gw_change *change = change_new(catalog, GW_CHANGE_UNREGISTER, name, principal);

    if (begin_change(change, loop, wait))
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
