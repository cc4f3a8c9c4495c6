/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/members/members.h"

#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"

/* Owned. What may be pending: a write of the own entry, the timer. */
struct gw_members {
    struct gw_members_options options;
    struct bus *bus;
    struct bus_watch watch;
    struct bus_wait written;
    struct net_timer refresh;  /* on every loop: what could not be read is read again */
    struct gw_member *members; /* by node */
    size_t n;
    size_t capacity;
    bool is_listening;  /* to a snapshot of the map */
    bool is_ready;      /* all of it is known */
    bool is_incomplete; /* there was no memory for some of it */
    bool is_announced;  /* the own entry has been written */
    bool is_dirty;      /* and is to be written again */
    enum gw_admission admission;
    uint64_t other; /* the node that it is refused for */
};

/* ---- the replica ---- */

/* The place of the first one whose id is not less. */
static size_t place_of(const struct gw_members *members, uint64_t node)
{
    size_t low = 0;
    size_t high = members->n;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (members->members[middle].node < node)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static struct gw_member *find_member(const struct gw_members *members, uint64_t node)
{
    const size_t place = place_of(members, node);

    return place < members->n && members->members[place].node == node ? &members->members[place]
                                                                      : NULL;
}

static peg_status insert_member(struct gw_members *members, const struct gw_member *member)
{
    const size_t place = place_of(members, member->node);
    struct gw_member *at;

    if (members->n >= PEG_LIMIT_GATEWAY_NODES)
        return PEG_ELIMIT;
    if (!PEG__RESERVE(members->members, members->n + 1, members->capacity))
        return PEG_ENOMEM;
    at = &members->members[place];
    memmove(at + 1, at, (members->n - place) * sizeof(*at));
    *at = *member;
    members->n++;
    return PEG_OK;
}

static void remove_member(struct gw_members *members, struct gw_member *member)
{
    const size_t place = (size_t)(member - members->members);

    members->n--;
    memmove(member, member + 1, (members->n - place) * sizeof(*member));
}

static peg_status put_member(struct gw_members *members, const struct bus_change *change)
{
    struct gw_member member;
    struct gw_member *known;
    peg_status status = gw_member_read(change->key, change->value, &member);

    if (status)
        return status;
    member.revision = change->revision;
    member.is_reported = members->is_listening;
    known = find_member(members, member.node);
    if (!known)
        return insert_member(members, &member);
    *known = member;
    return PEG_OK;
}

static void on_map_change(struct bus_watch *watch, const struct bus_change *change)
{
    struct gw_members *members = peg__container_of(watch, struct gw_members, watch);
    struct gw_member *known;
    uint64_t node;
    peg_status status = PEG_OK;

    if (change->is_snapshot)
        members->is_listening = true;
    if (change->value) {
        status = put_member(members, change);
    } else if (gw_member_parse_key(change->key, &node)) {
        known = find_member(members, node);
        if (known)
            remove_member(members, known);
    }
    if (status == PEG_ENOMEM)
        members->is_incomplete = true;
    else if (status == PEG_ELIMIT)
        peg__log(PEG_LOG_WARN, "node_ignored", "there are more than %d nodes: one is not listed",
                 PEG_LIMIT_GATEWAY_NODES);
    else if (status)
        peg__log(PEG_LOG_WARN, "node_ignored",
                 "an entry of the map of nodes is not one of ours: %zu bytes of key",
                 change->key.len);
}

static void decide_admission(struct gw_members *members);
static void write_own(struct gw_members *members);

/* What was there before a reset and was not reported again is gone, perhaps with the own entry. */
static void on_map_ready(struct bus_watch *watch)
{
    struct gw_members *members = peg__container_of(watch, struct gw_members, watch);

    for (size_t i = members->n; i > 0; i--) {
        struct gw_member *member = &members->members[i - 1];

        if (members->is_ready && !member->is_reported)
            remove_member(members, member);
        else
            member->is_reported = false;
    }
    members->is_listening = false;
    if (members->is_ready && members->options.is_home)
        write_own(members);
    members->is_ready = true;
    decide_admission(members);
}

/* ---- may it be one of them? ---- */

bool gw_members_is_live(const struct gw_members *members, const struct gw_member *member)
{
    return bus_now_ms(members->bus) - member->written_ms < member->lease_ms;
}

/* The own entry is written before the others are read: of two nodes that start at once at least
 * one finds the other. */
static void decide_admission(struct gw_members *members)
{
    if (members->admission != GW_ADMISSION_PENDING || !members->is_announced || !members->is_ready)
        return;
    members->admission = GW_ADMITTED;
    for (size_t i = 0; i < members->n; i++) {
        const struct gw_member *member = &members->members[i];

        if (member->protocol != GW_PROTOCOL && gw_members_is_live(members, member)) {
            members->admission = GW_NOT_ADMITTED;
            members->other = member->node;
        }
    }
}

enum gw_admission gw_members_admission(const struct gw_members *members,
                                       const struct gw_member **ret_other)
{
    *ret_other =
        members->admission == GW_NOT_ADMITTED ? find_member(members, members->other) : NULL;
    return members->admission;
}

/* ---- the own entry ---- */

static int64_t refresh_ns(const struct gw_members *members)
{
    return members->options.lease_ms * PEG_NS_PER_MS / GW_MEMBER_REFRESHES;
}

static void on_own_written(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct gw_members *members = peg__container_of(wait, struct gw_members, written);

    if (answer->status) /* the timer writes it again */
        return;
    members->is_announced = true;
    decide_admission(members);
    if (members->is_dirty)
        write_own(members);
}

static void write_own(struct gw_members *members)
{
    struct gw_member own = {.state = GW_MEMBER_STARTING};
    char key[GW_MEMBER_KEY];
    struct peg__blob *value;

    if (members->written.pending) {
        members->is_dirty = true;
        return;
    }
    members->is_dirty = false;
    members->options.describe(members->options.user, &own);
    own.node = members->bus->self.node;
    own.protocol = GW_PROTOCOL;
    own.written_ms = bus_now_ms(members->bus);
    own.lease_ms = members->options.lease_ms;
    value = gw_member_write(&own);
    if (!value)
        return; /* likewise */
    gw_member_key(own.node, key);
    bus_map_set(members->bus, BUS_MAP_NODES, peg__str(key), value, BUS_ANY_REVISION,
                &members->written);
    peg__blob_unref(value);
}

static void erase_member(struct gw_members *members, const struct gw_member *member)
{
    char key[GW_MEMBER_KEY];

    gw_member_key(member->node, key);
    bus_map_set(members->bus, BUS_MAP_NODES, peg__str(key), NULL, member->revision, NULL);
}

/* Entries of nodes that died while no other node was running. From the end: an entry that is
 * removed at once moves those behind it. */
static void erase_lost_members(struct gw_members *members)
{
    for (size_t i = members->n; i > 0; i--) {
        const struct gw_member *member = &members->members[i - 1];

        if (member->node != members->bus->self.node && !gw_members_is_live(members, member))
            erase_member(members, member);
    }
}

static void on_refresh(struct net_timer *timer)
{
    struct gw_members *members = peg__container_of(timer, struct gw_members, refresh);

    bus_arm(members->bus, timer, bus_now_ns(members->bus) + refresh_ns(members));
    if (members->is_incomplete) {
        members->is_incomplete = false;
        bus_map_unwatch(members->bus, BUS_MAP_NODES, &members->watch);
        bus_map_watch(members->bus, BUS_MAP_NODES, &members->watch);
    }
    if (!members->options.is_home)
        return;
    erase_lost_members(members);
    write_own(members);
}

void gw_members_refresh(struct gw_members *members)
{
    if (members->options.is_home)
        write_own(members);
}

void gw_members_on_node_lost(struct gw_members *members, struct bus_address address)
{
    const struct gw_member *member = find_member(members, address.node);

    if (member && members->options.is_home && address.loop == 0 &&
        address.node != members->bus->self.node)
        erase_member(members, member);
}

/* ---- reading ---- */

const struct gw_member *gw_members_list(const struct gw_members *members, size_t *ret_n)
{
    *ret_n = members->n;
    return members->members;
}

const struct gw_member *gw_members_find(const struct gw_members *members, uint64_t node)
{
    return find_member(members, node);
}

/* ---- its life ---- */

peg_status gw_members_new(const struct gw_members_options *options, struct gw_members **ret_members,
                          peg_error *reterr)
{
    struct gw_members *members = (struct gw_members *)peg__alloc_zero(1, sizeof(*members));

    if (!members)
        return peg__fail_nomem(reterr);
    members->options = *options;
    members->bus = options->bus;
    members->watch.on_change = on_map_change;
    members->watch.on_ready = on_map_ready;
    members->written.fn = on_own_written;
    members->refresh.fn = on_refresh;
    bus_map_watch(members->bus, BUS_MAP_NODES, &members->watch);
    on_refresh(&members->refresh);
    *ret_members = members;
    return PEG_OK;
}

struct gw_members *gw_members_free(struct gw_members *members)
{
    char key[GW_MEMBER_KEY];

    if (!members)
        return NULL;
    bus_map_unwatch(members->bus, BUS_MAP_NODES, &members->watch);
    bus_disarm(members->bus, &members->refresh);
    bus_forget_wait(members->bus, &members->written);
    if (members->options.is_home) {
        gw_member_key(members->bus->self.node, key);
        bus_map_set(members->bus, BUS_MAP_NODES, peg__str(key), NULL, BUS_ANY_REVISION, NULL);
    }
    peg__free(members->members);
    peg__free(members);
    return NULL;
}
