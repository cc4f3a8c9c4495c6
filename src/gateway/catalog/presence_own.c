/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The entries that this loop writes, because it holds the streams of their providers. There is one
 * write at a time for each; what changes meanwhile is written behind it.
 *
 * A put takes the key whoever has it: a provider that comes back here has left where it was. All
 * later writes expect the revision of the one before: if it is another, somebody else has put, and
 * the entry is theirs.
 */

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/presence_internal.h"

static void forget(struct presence_own *own)
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
static const struct gw_provider_entry *standing(const struct presence_own *own)
{
    const struct presence_toolset *toolset =
        presence_find(own->presence, peg__strn(own->key.ptr, own->toolset_len));

    return toolset ? presence_entry(toolset, own->entry.incarnation) : NULL;
}

static bool is_ours(const struct presence_own *own, const struct gw_provider_entry *entry)
{
    return entry && bus_address_equal(entry->address, own->presence->bus->self);
}

/* Its stream here is the old half of it, which may not have noticed. */
static void tell_moved(const struct presence_own *own)
{
    const struct gw_presence *presence = own->presence;

    if (!own->is_gone && presence->on_moved)
        presence->on_moved(presence->moved_user, own->entry.incarnation);
}

/* Somebody else has written the key, or it is gone. */
static void lost(struct presence_own *own)
{
    const struct gw_provider_entry *entry = standing(own);
    const bool is_news = is_ours(own, entry) && entry->revision != own->expected;

    if (own->is_gone ? !is_news : entry && !is_ours(own, entry)) {
        tell_moved(own);
        forget(own);
        return;
    }
    /* The replica has not heard yet whose it is: to take it now would take it back. */
    if (is_ours(own, entry) && !is_news) {
        try_later(own);
        return;
    }
    own->expected = is_news ? entry->revision : BUS_ANY_REVISION;
    write_own(own);
}

static void on_written(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct presence_own *own = (struct presence_own *)wait;

    if (answer->status) {
        try_later(own);
        return;
    }
    if (!answer->written) {
        lost(own);
        return;
    }
    own->expected = answer->revision;
    if (own->is_dirty)
        write_own(own);
    else if (own->is_gone)
        forget(own);
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
    value = own->is_gone ? NULL : presence_write(&own->entry);
    if (!own->is_gone && !value) {
        try_later(own);
        return;
    }
    bus_map_set(presence->bus, BUS_MAP_PROVIDERS, own->key, value, own->expected, &own->wait);
    peg__blob_unref(value);
}

/* The entry that a loop stands on may be removed. Whoever hears of changes may add some, and so
 * hears of them behind the loop. */
static void write_dirty(struct net_timer *timer)
{
    struct gw_presence *presence = peg__container_of(timer, struct gw_presence, retry);

    presence->is_telling = true;
    PEG__MAP_EACH(&presence->own, entry)
    {
        struct presence_own *own = entry->value;

        if (own->is_dirty && !own->wait.pending)
            write_own(own);
    }
    presence->is_telling = false;
    presence_tell(presence);
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
    forget(entry->value);
    peg__map_free(&presence->own);
}

/* As above, and perhaps from within it; besides, what is about to be written again has not changed.
 */
void presence_own_ready(struct gw_presence *presence)
{
    const bool was_telling = presence->is_telling;

    presence->is_telling = true;
    PEG__MAP_EACH(&presence->own, entry)
    {
        struct presence_own *own = entry->value;
        const struct gw_provider_entry *now = standing(own);

        if (now && !is_ours(own, now)) {
            if (own->expected == BUS_ANY_REVISION)
                continue; /* a put that is on its way, and takes it */
            tell_moved(own);
            forget(own);
        } else if (!now && !own->is_gone) {
            own->expected = BUS_ANY_REVISION;
            write_own(own);
        }
    }
    presence->is_telling = was_telling;
}

/* What is heard while a write is on its way may be from before it: its answer tells. */
void presence_own_hear(struct gw_presence *presence, peg_str key,
                       const struct gw_provider_entry *entry)
{
    const struct presence_own *own = peg__map_get(&presence->own, key);

    if (own && !own->wait.pending && own->expected != BUS_ANY_REVISION &&
        entry->revision > own->expected)
        tell_moved(own);
}

/* ---- for the holder ---------------------------------------------------------------------------
 */

static struct presence_own *find(struct gw_presence *presence, peg_str toolset,
                                 const char *incarnation)
{
    char key[PRESENCE_KEY + 1];

    return peg__map_get(&presence->own, presence_key(toolset, incarnation, key));
}

static peg_status add(struct gw_presence *presence, peg_str toolset, const char *incarnation,
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
                         "PEG_LIMIT_GATEWAY_PROVIDERS (%d) providers are attached to this loop: "
                         "attach to another node, or try again",
                         PEG_LIMIT_GATEWAY_PROVIDERS);
    }
    own->wait.fn = on_written;
    own->presence = presence;
    own->key = peg__map_find(&presence->own, key)->name;
    own->toolset_len = toolset.len;
    *ret_own = own;
    return PEG_OK;
}

peg_status gw_presence_put(struct gw_presence *presence, peg_str toolset,
                           const struct gw_provider_entry *entry, peg_error *reterr)
{
    struct presence_own *own = find(presence, toolset, entry->incarnation);
    const peg_status status =
        own ? PEG_OK : add(presence, toolset, entry->incarnation, &own, reterr);

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

void gw_presence_pong(struct gw_presence *presence, peg_str toolset, const char *incarnation)
{
    struct presence_own *own = find(presence, toolset, incarnation);

    if (!own || own->is_gone)
        return;
    own->entry.last_pong_ms = bus_now_ms(presence->bus);
    own->entry.is_awaited = false;
    write_own(own);
}

void gw_presence_await(struct gw_presence *presence, peg_str toolset, const char *incarnation)
{
    struct presence_own *own = find(presence, toolset, incarnation);

    if (!own || own->is_gone)
        return;
    own->entry.is_awaited = true;
    write_own(own);
}

void gw_presence_serve(struct gw_presence *presence, peg_str toolset, const char *incarnation,
                       uint64_t revision)
{
    struct presence_own *own = find(presence, toolset, incarnation);

    if (!own || own->is_gone)
        return;
    own->entry.serves = revision;
    write_own(own);
}

void gw_presence_remove(struct gw_presence *presence, peg_str toolset, const char *incarnation)
{
    struct presence_own *own = find(presence, toolset, incarnation);

    if (!own)
        return;
    own->is_gone = true;
    write_own(own);
}
