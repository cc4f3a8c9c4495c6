/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The entries that this loop writes, because it has the streams of their providers. There is one
 * write at a time for each; what changes meanwhile is written behind it.
 *
 * A put takes the key whichever loop has it: a provider that comes back here has left where it was.
 * All later writes expect the revision of the one before: if it is another, another loop has put,
 * and the entry belongs to that loop.
 */

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/internal.h"
#include "pegboard/cleanup.h"
#include "wire/wire.h"
#include "json/json.h"

/*
 * ---- the form of an entry: key "toolset#incarnation", value
 *
 *   {"at":"9f86d081884c7d65.0","pong_ms":1700000000000,"credits":4,"revision":7,"draining":true}
 *
 * and "awaited":true while its schemas are younger than its pong, "direct":true of the providers of
 * a direct toolset, who have no stream: "at" is then who wrote it. Others may have written it, so
 * everything is checked. ----
 */

enum { VALUE_BYTES = 512 };

peg_str presence_key(peg_str toolset, const char *incarnation, char ret_key[PRESENCE_KEY + 1])
{
    const size_t len = strlen(incarnation);

    memcpy(ret_key, toolset.ptr, toolset.len);
    ret_key[toolset.len] = '#';
    memcpy(ret_key + toolset.len + 1, incarnation, len + 1);
    return peg__strn(ret_key, toolset.len + 1 + len);
}

static struct peg__blob *write_entry(const struct gw_provider_entry *entry)
{
    struct peg__buf buf = PEG__BUF(VALUE_BYTES);
    struct peg__out out = {.buf = &buf};
    struct peg__blob *blob;
    char address[BUS_ADDRESS_TEXT];

    bus_address_print(entry->address, address);
    peg__out_object(&out);
    peg__out_cmember(&out, "at", address);
    peg__out_key(&out, "pong_ms");
    peg__out_integer(&out, entry->last_pong_ms);
    peg__out_key(&out, "credits");
    peg__out_integer(&out, entry->credits);
    peg__out_key(&out, "revision");
    peg__out_integer(&out, (int64_t)entry->serves);
    if (entry->is_draining) {
        peg__out_key(&out, "draining");
        peg__out_bool(&out, true);
    }
    if (entry->is_awaited) {
        peg__out_key(&out, "awaited");
        peg__out_bool(&out, true);
    }
    if (entry->is_direct) {
        peg__out_key(&out, "direct");
        peg__out_bool(&out, true);
    }
    peg__out_end_object(&out);
    blob = buf.status ? NULL : peg__blob_copy(peg__buf_view(&buf));
    peg__buf_free(&buf);
    return blob;
}

bool presence_read_key(peg_str key, peg_str *ret_toolset, struct gw_provider_entry *ret_entry)
{
    const char *mark = key.len <= PRESENCE_KEY ? memchr(key.ptr, '#', key.len) : NULL;
    peg_str toolset;
    peg_str incarnation;

    if (!mark)
        return false;
    toolset = peg__strn(key.ptr, (size_t)(mark - key.ptr));
    incarnation = peg__str_from(key, toolset.len + 1);
    if (wire_check_name(toolset, "toolset", NULL) || wire_check_incarnation(incarnation, NULL))
        return false;
    memcpy(ret_entry->incarnation, incarnation.ptr, incarnation.len);
    ret_entry->incarnation[incarnation.len] = '\0';
    *ret_toolset = toolset;
    return true;
}

static bool read_count_member(const peg_json *object, const char *member, int64_t max,
                              int64_t *ret_number)
{
    const peg_json *value = peg_json_get(object, member);

    return value && peg_json_int64(value, ret_number) && *ret_number >= 0 && *ret_number <= max;
}

static bool read_value(const peg_json *root, struct gw_provider_entry *ret_entry)
{
    const peg_json *address = peg_json_get(root, "at");
    const peg_json *is_draining = peg_json_get(root, "draining");
    const peg_json *is_awaited = peg_json_get(root, "awaited");
    const peg_json *is_direct = peg_json_get(root, "direct");
    const peg_json *revision = peg_json_get(root, "revision");
    int64_t credits;
    int64_t serves = 0;

    if (!address || address->kind != PEG_JSON_STRING ||
        !bus_address_parse(peg_json_str(address), &ret_entry->address) ||
        !read_count_member(root, "pong_ms", INT64_MAX, &ret_entry->last_pong_ms) ||
        !read_count_member(root, "credits", PEG_LIMIT_GATEWAY_CREDITS, &credits) ||
        (revision && !read_count_member(root, "revision", INT64_MAX, &serves)))
        return false;
    ret_entry->credits = (uint32_t)credits;
    ret_entry->serves = (uint64_t)serves;
    ret_entry->is_draining = is_draining && peg_json_is_true(is_draining);
    ret_entry->is_awaited = is_awaited && peg_json_is_true(is_awaited);
    ret_entry->is_direct = is_direct && peg_json_is_true(is_direct);
    return true;
}

peg_status presence_read(peg_str key, const struct peg__blob *value, peg_str *ret_toolset,
                         struct gw_provider_entry *ret_entry)
{
    PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *doc = NULL;
    const peg_json_options options = {PEG_JSON_OPTIONS_INIT, .max_bytes = VALUE_BYTES,
                                      .max_depth = 4};
    struct gw_provider_entry entry = {.sent = 0};
    peg_status status;

    if (!presence_read_key(key, ret_toolset, &entry))
        return PEG_EPARSE;
    status = peg_json_parse(peg__blob_str(value), &options, &doc, NULL);
    if (status)
        return status == PEG_ENOMEM ? PEG_ENOMEM : PEG_EPARSE;
    if (!read_value(peg_json_root(doc), &entry))
        return PEG_EPARSE;
    *ret_entry = entry;
    return PEG_OK;
}

/* ---- writing ---- */

static void forget_own(struct presence_own *own)
{
    struct gw_presence *presence = own->presence;

    bus_forget_wait(presence->bus, &own->wait);
    peg__map_remove(&presence->own, own->key, NULL);
    peg__free(own);
}

static void try_later(struct presence_own *own)
{
    struct gw_presence *presence = own->presence;

    own->is_dirty = true;
    if (!presence->retry.is_armed)
        bus_arm(presence->bus, &presence->retry,
                bus_now_ns(presence->bus) + PRESENCE_RETRY_MS * INT64_C(1000000));
}

static void write_own(struct presence_own *own);

/* What the replica says of it; NULL: nothing. */
static const struct gw_provider_entry *find_current(const struct presence_own *own)
{
    const struct presence_toolset *toolset =
        presence_find(own->presence, peg__strn(own->key.ptr, own->toolset_len));

    return toolset ? presence_entry(toolset, own->entry.incarnation) : NULL;
}

static bool is_own_entry(const struct presence_own *own, const struct gw_provider_entry *entry)
{
    return entry && bus_address_equal(entry->address, own->presence->bus->self);
}

/* Its stream here is the old half of it, which may not have noticed. */
static void report_moved(const struct presence_own *own)
{
    const struct gw_presence *presence = own->presence;

    if (!own->is_gone && presence->on_moved)
        presence->on_moved(presence->moved_user, own->entry.incarnation);
}

/* Somebody else has written the key, or it is gone. */
static void handle_lost(struct presence_own *own)
{
    const struct gw_provider_entry *entry = find_current(own);
    const bool is_news = is_own_entry(own, entry) && entry->revision != own->expected;

    if (own->is_gone ? !is_news : entry && !is_own_entry(own, entry)) {
        report_moved(own);
        forget_own(own);
        return;
    }
    /* The replica does not know the new owner yet: taking it now would take it back. */
    if (is_own_entry(own, entry) && !is_news) {
        try_later(own);
        return;
    }
    own->expected = is_news ? entry->revision : BUS_ANY_REVISION;
    write_own(own);
}

static void on_own_written(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct presence_own *own = (struct presence_own *)wait;

    if (answer->status) {
        try_later(own);
        return;
    }
    if (!answer->written) {
        handle_lost(own);
        return;
    }
    own->expected = answer->revision;
    if (own->is_dirty)
        write_own(own);
    else if (own->is_gone)
        forget_own(own);
}

/* `own` may be gone when it returns. */
static void write_own(struct presence_own *own)
{
    struct gw_presence *presence = own->presence;
    struct peg__blob *value;

    if (own->wait.pending) {
        own->is_dirty = true;
        return;
    }
    own->is_dirty = false;
    value = own->is_gone ? NULL : write_entry(&own->entry);
    if (!own->is_gone && !value) {
        try_later(own);
        return;
    }
    bus_map_set(presence->bus, BUS_MAP_PROVIDERS, own->key, value, own->expected, &own->wait);
    peg__blob_unref(value);
}

/* The entry that a loop stands on may be removed. An observer of changes may add some, and
 * so gets them behind the loop. */
static void write_dirty(struct net_timer *timer)
{
    struct gw_presence *presence = peg__container_of(timer, struct gw_presence, retry);

    presence->is_notifying = true;
    PEG__MAP_EACH(&presence->own, entry)
    {
        struct presence_own *own = entry->value;

        if (own->is_dirty && !own->wait.pending)
            write_own(own);
    }
    presence->is_notifying = false;
    presence_notify(presence);
}

void presence_own_init(struct gw_presence *presence)
{
    presence->own = (struct peg__map)PEG__MAP(PEG_LIMIT_GATEWAY_PROVIDERS);
    presence->retry.fn = write_dirty;
}

void presence_own_free(struct gw_presence *presence)
{
    bus_disarm(presence->bus, &presence->retry);
    PEG__MAP_EACH(&presence->own, entry)
    forget_own(entry->value);
    peg__map_free(&presence->own);
}

/* As above, and perhaps from within it; besides, what is about to be written again has not changed.
 */
void presence_own_ready(struct gw_presence *presence)
{
    const bool was_telling = presence->is_notifying;

    presence->is_notifying = true;
    PEG__MAP_EACH(&presence->own, entry)
    {
        struct presence_own *own = entry->value;
        const struct gw_provider_entry *now = find_current(own);

        if (now && !is_own_entry(own, now)) {
            if (own->expected == BUS_ANY_REVISION)
                continue; /* a put that is on its way, and takes it */
            report_moved(own);
            forget_own(own);
        } else if (!now && !own->is_gone) {
            own->expected = BUS_ANY_REVISION;
            write_own(own);
        }
    }
    presence->is_notifying = was_telling;
}

/* A notice that arrives during a write may be older than it: the answer to the write decides. */
void presence_own_on_written(struct gw_presence *presence, peg_str key,
                             const struct gw_provider_entry *entry)
{
    const struct presence_own *own = peg__map_get(&presence->own, key);

    if (own && !own->wait.pending && own->expected != BUS_ANY_REVISION &&
        entry->revision > own->expected)
        report_moved(own);
}

/* ---- for the loop that has the stream ---- */

static struct presence_own *find_own(struct gw_presence *presence, peg_str toolset,
                                     const char *incarnation)
{
    char key[PRESENCE_KEY + 1];

    return peg__map_get(&presence->own, presence_key(toolset, incarnation, key));
}

static peg_status add_own(struct gw_presence *presence, peg_str toolset, const char *incarnation,
                          struct presence_own **ret_own, peg_error *reterr)
{
    char text[PRESENCE_KEY + 1];
    const peg_str key = presence_key(toolset, incarnation, text);
    struct presence_own *own = peg__alloc_zero(1, sizeof(*own));
    peg_status status;

    if (!own)
        return peg__fail_nomem(reterr);
    status = peg__map_add(&presence->own, key, own);
    if (status) {
        peg__free(own);
        if (status == PEG_ENOMEM)
            return peg__fail_nomem(reterr);
        /* Some may have gone whose entries are still being taken out. */
        return peg__fail(reterr, PEG_ELIMIT, "E_NODE_FULL",
                         "this node has too many providers; attach to another node, or retry");
    }
    own->wait.fn = on_own_written;
    own->presence = presence;
    own->key = peg__map_find(&presence->own, key)->name;
    own->toolset_len = toolset.len;
    *ret_own = own;
    return PEG_OK;
}

peg_status gw_presence_put(struct gw_presence *presence, peg_str toolset,
                           const struct gw_provider_entry *entry, peg_error *reterr)
{
    struct presence_own *own = find_own(presence, toolset, entry->incarnation);
    const peg_status status =
        own ? PEG_OK : add_own(presence, toolset, entry->incarnation, &own, reterr);

    if (status || !own)
        return status;
    own->entry = *entry;
    own->is_gone = false;
    own->expected = BUS_ANY_REVISION;
    write_own(own);
    return PEG_OK;
}

void gw_presence_on_moved(struct gw_presence *presence,
                          void (*fn)(void *user, const char *incarnation), void *user)
{
    presence->on_moved = fn;
    presence->moved_user = user;
}

static struct presence_own *find_present(struct gw_presence *presence, peg_str toolset,
                                         const char *incarnation)
{
    struct presence_own *own = find_own(presence, toolset, incarnation);

    return own && !own->is_gone ? own : NULL;
}

void gw_presence_pong(struct gw_presence *presence, peg_str toolset, const char *incarnation)
{
    struct presence_own *own = find_present(presence, toolset, incarnation);

    if (!own)
        return;
    own->entry.last_pong_ms = bus_now_ms(presence->bus);
    own->entry.is_awaited = false;
    write_own(own);
}

void gw_presence_await(struct gw_presence *presence, peg_str toolset, const char *incarnation)
{
    struct presence_own *own = find_present(presence, toolset, incarnation);

    if (!own)
        return;
    own->entry.is_awaited = true;
    write_own(own);
}

void gw_presence_serve(struct gw_presence *presence, peg_str toolset, const char *incarnation,
                       uint64_t revision)
{
    struct presence_own *own = find_present(presence, toolset, incarnation);

    if (!own)
        return;
    own->entry.serves = revision;
    write_own(own);
}

void gw_presence_remove(struct gw_presence *presence, peg_str toolset, const char *incarnation)
{
    struct presence_own *own = find_own(presence, toolset, incarnation);

    if (!own)
        return;
    own->is_gone = true;
    write_own(own);
}

/* The revision is that of its last write: what other loops know may skip those before it. */
bool gw_presence_is_known(struct gw_presence *presence, peg_str toolset, const char *incarnation)
{
    const struct presence_own *own = find_present(presence, toolset, incarnation);
    const struct gw_presence_options *options = &presence->options;

    if (!own)
        return true;
    if (own->wait.pending || own->is_dirty || own->expected == BUS_ANY_REVISION)
        return false;
    for (unsigned i = 0; options->known && i < options->n_loops; i++)
        if (atomic_load_explicit(&options->known[i], memory_order_acquire) < own->expected)
            return false;
    return true;
}

/* ---- for direct toolsets ---- */

static const char direct_incarnation[] = "direct-providers";

void gw_presence_put_direct(struct gw_presence *presence, peg_str toolset, uint64_t revision,
                            bool is_awaited)
{
    struct gw_provider_entry entry = {
        .address = presence->bus->self,
        .last_pong_ms = is_awaited ? gw_presence_health(presence, toolset).last_pong_ms
                                   : bus_now_ms(presence->bus),
        .serves = revision,
        .is_awaited = is_awaited,
        .is_direct = true,
    };
    char key[PRESENCE_KEY + 1];
    struct peg__blob *value = write_entry(&entry);

    if (value)
        bus_map_set(presence->bus, BUS_MAP_PROVIDERS,
                    presence_key(toolset, direct_incarnation, key), value, BUS_ANY_REVISION, NULL);
    peg__blob_unref(value);
}

void gw_presence_remove_direct(struct gw_presence *presence, peg_str toolset)
{
    char key[PRESENCE_KEY + 1];

    bus_map_set(presence->bus, BUS_MAP_PROVIDERS, presence_key(toolset, direct_incarnation, key),
                NULL, BUS_ANY_REVISION, NULL);
}
