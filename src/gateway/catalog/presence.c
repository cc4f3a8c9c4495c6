/* SPDX-License-Identifier: Apache-2.0 */

#include "gateway/catalog/catalog.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "gateway/catalog/internal.h"
#include "pegboard/tool_config.h"
#include "wire/wire.h"

enum {
    LOOK_MIN_MS = 20,
    LOOK_MAX_MS = 1000,
    /* A pong from the future is a clock that goes wrong, not a provider that lives long. */
    FUTURE_MS = 60000,
    AGAIN_MS = 100,
};

/* ---- health ---- */

bool gw_provider_is_well(const struct gw_presence *presence, const struct gw_provider_entry *entry,
                         int64_t now_ms)
{
    return !entry->is_awaited && now_ms - entry->last_pong_ms <= presence->staleness_ms;
}

static enum gw_health_state state_of(const struct gw_presence *presence,
                                     const struct presence_toolset *toolset, int64_t now_ms)
{
    for (size_t i = 0; i < toolset->n; i++) {
        const struct gw_provider_entry *entry = &toolset->entries[i];

        if (!entry->is_draining && gw_provider_is_well(presence, entry, now_ms))
            return GW_HEALTHY;
    }
    return GW_UNHEALTHY;
}

struct presence_toolset *presence_find(struct gw_presence *presence, peg_str toolset)
{
    if (!presence->asked || !peg__str_eq(presence->asked->name, toolset))
        presence->asked = peg__map_get(&presence->toolsets, toolset);
    return presence->asked;
}

struct gw_provider_entry *presence_entry(const struct presence_toolset *toolset,
                                         const char *incarnation)
{
    for (size_t i = 0; i < toolset->n; i++) {
        if (strcmp(toolset->entries[i].incarnation, incarnation) == 0)
            return &toolset->entries[i];
    }
    return NULL;
}

struct gw_health gw_presence_health(struct gw_presence *presence, peg_str toolset)
{
    const struct presence_toolset *found = presence_find(presence, toolset);
    struct gw_health health = {.state = GW_UNHEALTHY, .staleness_ms = presence->staleness_ms};

    if (!found)
        return health;
    health.state = state_of(presence, found, bus_now_ms(presence->bus));
    health.last_pong_ms = found->last_pong_ms;
    health.n_providers = (unsigned)found->n;
    for (size_t i = 0; i < found->n; i++)
        health.n_draining += found->entries[i].is_draining;
    return health;
}

bool gw_presence_is_healthy(struct gw_presence *presence, peg_str toolset)
{
    const struct presence_toolset *found = presence_find(presence, toolset);

    return found && state_of(presence, found, bus_now_ms(presence->bus)) == GW_HEALTHY;
}

bool gw_presence_is_live(struct gw_presence *presence, peg_str toolset)
{
    const struct presence_toolset *found = presence_find(presence, toolset);
    const int64_t now_ms = bus_now_ms(presence->bus);

    for (size_t i = 0; found && i < found->n; i++) {
        const struct gw_provider_entry *entry = &found->entries[i];

        if (!entry->is_direct || gw_provider_is_well(presence, entry, now_ms))
            return true;
    }
    return false;
}

struct gw_provider_entry *gw_presence_providers(struct gw_presence *presence, peg_str toolset,
                                                size_t *ret_n)
{
    const struct presence_toolset *found = presence_find(presence, toolset);

    *ret_n = found ? found->n : 0;
    return found ? found->entries : NULL;
}

size_t gw_presence_count_at(const struct gw_presence *presence, uint64_t node)
{
    size_t n = 0;

    PEG__MAP_EACH(&presence->toolsets, item)
    {
        const struct presence_toolset *toolset = (const struct presence_toolset *)item->value;

        for (size_t i = 0; i < toolset->n; i++)
            n += !toolset->entries[i].is_direct && toolset->entries[i].address.node == node;
    }
    return n;
}

static void print_ms(int64_t ms, char text[PEG_DURATION_TEXT])
{
    peg_duration_text(ms < INT64_MAX / PEG_NS_PER_MS ? ms * PEG_NS_PER_MS : INT64_MAX, text);
}

static bool is_any_awaited(struct gw_presence *presence, peg_str toolset)
{
    size_t n;
    const struct gw_provider_entry *entries = gw_presence_providers(presence, toolset, &n);

    for (size_t i = 0; i < n; i++)
        if (entries[i].is_awaited && !entries[i].is_draining)
            return true;
    return false;
}

/* What stands behind the colon: what is wrong with them, and what to do. */
static void put_remedy(struct gw_presence *presence, peg_str toolset,
                       const struct gw_health *health, struct peg__buf *ret_text)
{
    if (health->n_providers == 0)
        peg__buf_puts(ret_text, ": none is attached; start one");
    else if (health->n_draining == health->n_providers)
        peg__buf_printf(ret_text, ": all %u that are attached are draining; start another",
                        health->n_providers);
    else if (is_any_awaited(presence, toolset))
        peg__buf_printf(ret_text,
                        ": %u attached, none has answered a ping since its schemas changed; try "
                        "again",
                        health->n_providers);
    else
        peg__buf_printf(ret_text, ": %u attached, none answers pings; restart it",
                        health->n_providers);
}

void gw_presence_explain(struct gw_presence *presence, peg_str toolset, struct peg__buf *ret_text)
{
    const struct gw_health health = gw_presence_health(presence, toolset);
    const int64_t age_ms = bus_now_ms(presence->bus) - health.last_pong_ms;
    char age[PEG_DURATION_TEXT] = "0s";
    char pong[WIRE_TIME_TEXT] = "missing";

    if (health.last_pong_ms) {
        print_ms(age_ms > 0 ? age_ms : 0, age);
        wire_time_print_ms(health.last_pong_ms, pong);
    }
    peg__buf_puts(ret_text, "no healthy providers for toolset \"");
    peg__buf_str(ret_text, toolset);
    peg__buf_puts(ret_text, "\" (staleness_threshold=");
    peg__buf_puts(ret_text, presence->staleness);
    peg__buf_puts(ret_text, ", last_pong=");
    peg__buf_puts(ret_text, pong);
    peg__buf_puts(ret_text, ", age=");
    peg__buf_puts(ret_text, age);
    peg__buf_puts(ret_text, ")");
    put_remedy(presence, toolset, &health, ret_text);
}

/* ---- telling ---- */

static void note_change(struct gw_presence *presence, struct presence_toolset *toolset)
{
    if (toolset->is_changed)
        return;
    toolset->is_changed = true;
    toolset->next_changed = NULL;
    *presence->changed_end = toolset;
    presence->changed_end = &toolset->next_changed;
}

/* Is it something else than was reported before? An entry that is written again often is not. */
static bool take_news(struct gw_presence *presence, struct presence_toolset *toolset)
{
    const struct gw_health health = gw_presence_health(presence, toolset->name);
    const bool is_news = health.state != toolset->reported ||
                         health.n_providers != toolset->n_reported ||
                         health.n_draining != toolset->n_reported_draining;

    toolset->reported = health.state;
    toolset->n_reported = health.n_providers;
    toolset->n_reported_draining = health.n_draining;
    return is_news;
}

/* on_change may lead to further changes; they are reported after it returns. */
void presence_notify(struct gw_presence *presence)
{
    if (presence->is_notifying)
        return;
    presence->is_notifying = true;
    while (presence->changed) {
        struct presence_toolset *toolset = presence->changed;

        presence->changed = toolset->next_changed;
        if (!presence->changed)
            presence->changed_end = &presence->changed;
        toolset->is_changed = false;
        if (take_news(presence, toolset) && presence->on_change)
            presence->on_change(presence->user, toolset->name);
    }
    presence->is_notifying = false;
}

/* ---- looking who has become stale ---- */

static int64_t stale_check_ms(const struct gw_presence *presence)
{
    const int64_t ms = presence->options.ping_interval_ms / 4;

    return ms < LOOK_MIN_MS ? LOOK_MIN_MS : ms > LOOK_MAX_MS ? LOOK_MAX_MS : ms;
}

static void arm_stale_check(struct gw_presence *presence)
{
    if (!presence->look.is_armed && presence->toolsets.n)
        bus_arm(presence->bus, &presence->look,
                bus_now_ns(presence->bus) + stale_check_ms(presence) * PEG_NS_PER_MS);
}

static void free_toolset(struct gw_presence *presence, struct presence_toolset *toolset)
{
    presence->n_entries -= toolset->n;
    peg__free(toolset->entries);
    presence->asked = NULL;
    peg__map_remove(&presence->toolsets, toolset->name, NULL);
    peg__free(toolset);
}

/* What a node that died has left: one loop of each node looks for it. */
static const struct gw_provider_entry *find_dead(const struct gw_presence *presence,
                                                 const struct presence_toolset *toolset,
                                                 int64_t now_ms)
{
    if (presence->bus->self.loop != 0)
        return NULL;
    for (size_t i = 0; i < toolset->n; i++) {
        if (now_ms - toolset->entries[i].last_pong_ms > PEG_LIMIT_GATEWAY_GONE_MS)
            return &toolset->entries[i];
    }
    return NULL;
}

/* A few each time; the map changes only on notices, so it is not in use meanwhile. */
struct dead {
    char key[PRESENCE_KEY + 1];
    uint64_t revision;
};
enum { MAX_DEAD = 16 };

static void note_dead(const struct presence_toolset *toolset, const struct gw_provider_entry *entry,
                      struct dead *dead, size_t *n)
{
    if (!entry || *n == MAX_DEAD)
        return;
    presence_key(toolset->name, entry->incarnation, dead[*n].key);
    dead[(*n)++].revision = entry->revision;
}

static bool is_forgettable(const struct presence_toolset *toolset, int64_t now_ms)
{
    return toolset->n == 0 && !toolset->is_changed &&
           now_ms - toolset->last_pong_ms > PEG_LIMIT_GATEWAY_PRESENCE_MS;
}

static void check_stale(struct net_timer *timer)
{
    struct gw_presence *presence = peg__container_of(timer, struct gw_presence, look);
    const int64_t now_ms = bus_now_ms(presence->bus);
    struct dead dead[MAX_DEAD];
    size_t n_dead = 0;

    PEG__MAP_EACH(&presence->toolsets, entry)
    {
        struct presence_toolset *toolset = entry->value;

        if (state_of(presence, toolset, now_ms) != toolset->reported)
            note_change(presence, toolset);
        note_dead(toolset, find_dead(presence, toolset, now_ms), dead, &n_dead);
        if (is_forgettable(toolset, now_ms))
            free_toolset(presence, toolset);
    }
    for (size_t i = 0; i < n_dead; i++)
        bus_map_set(presence->bus, BUS_MAP_PROVIDERS, peg__str(dead[i].key), NULL, dead[i].revision,
                    NULL);
    presence_notify(presence);
    arm_stale_check(presence);
}

/* Its providers are as one whose last pong was long ago: not well, and check_stale() removes them.
 * If the node was only held up, it writes them again. */
void gw_presence_on_node_lost(struct gw_presence *presence, struct bus_address address)
{
    const int64_t now_ms = bus_now_ms(presence->bus);

    PEG__MAP_EACH(&presence->toolsets, item)
    {
        struct presence_toolset *toolset = item->value;

        for (size_t i = 0; i < toolset->n; i++)
            if (!toolset->entries[i].is_direct &&
                bus_address_equal(toolset->entries[i].address, address))
                toolset->entries[i].last_pong_ms = -(int64_t)PEG_LIMIT_GATEWAY_GONE_MS;
        if (state_of(presence, toolset, now_ms) != toolset->reported)
            note_change(presence, toolset);
    }
    presence_notify(presence);
    arm_stale_check(presence);
}

/* ---- the replica ---- */

static peg_status add_toolset(struct gw_presence *presence, peg_str name,
                              struct presence_toolset **ret_toolset)
{
    struct presence_toolset *toolset = presence_find(presence, name);
    peg_status status;

    if (!toolset) {
        toolset = peg__alloc_zero(1, sizeof(*toolset));
        if (!toolset)
            return PEG_ENOMEM;
        toolset->reported = GW_UNHEALTHY;
        status = peg__map_add(&presence->toolsets, name, toolset);
        if (status) {
            peg__free(toolset);
            return status;
        }
        toolset->name = peg__map_find(&presence->toolsets, name)->name;
    }
    *ret_toolset = toolset;
    return PEG_OK;
}

static peg_status add_entry(struct gw_presence *presence, struct presence_toolset *toolset,
                            const struct gw_provider_entry *entry)
{
    if (presence->n_entries >= PEG_LIMIT_GATEWAY_PRESENT)
        return PEG_ELIMIT;
    if (!PEG__RESERVE(toolset->entries, toolset->n + 1, toolset->capacity))
        return PEG_ENOMEM;
    toolset->entries[toolset->n++] = *entry;
    presence->n_entries++;
    note_change(presence, toolset);
    return PEG_OK;
}

static bool is_same_entry(const struct gw_provider_entry *a, const struct gw_provider_entry *b)
{
    return bus_address_equal(a->address, b->address) && a->is_draining == b->is_draining &&
           a->is_awaited == b->is_awaited && a->credits == b->credits && a->serves == b->serves;
}

static peg_status put_entry(struct gw_presence *presence, peg_str name,
                            struct gw_provider_entry *entry)
{
    const int64_t now_ms = bus_now_ms(presence->bus);
    struct presence_toolset *toolset;
    struct gw_provider_entry *known;
    peg_status status = add_toolset(presence, name, &toolset);

    if (status)
        return status;
    if (entry->last_pong_ms > now_ms + FUTURE_MS)
        entry->last_pong_ms = now_ms;
    if (entry->last_pong_ms > toolset->last_pong_ms)
        toolset->last_pong_ms = entry->last_pong_ms;
    known = presence_entry(toolset, entry->incarnation);
    if (!known)
        return add_entry(presence, toolset, entry);

    if (!is_same_entry(known, entry))
        note_change(presence, toolset);
    entry->sent = known->sent;
    entry->said_outdated = known->said_outdated && known->serves == entry->serves;
    *known = *entry;
    if (state_of(presence, toolset, now_ms) != toolset->reported)
        note_change(presence, toolset);
    return PEG_OK;
}

static void drop_entry(struct gw_presence *presence, struct presence_toolset *toolset, size_t i)
{
    memmove(&toolset->entries[i], &toolset->entries[i + 1],
            (toolset->n - i - 1) * sizeof(*toolset->entries));
    toolset->n--;
    presence->n_entries--;
    note_change(presence, toolset);
}

static void remove_entry(struct gw_presence *presence, peg_str key)
{
    struct gw_provider_entry entry;
    struct gw_provider_entry *known;
    struct presence_toolset *toolset;
    peg_str name;

    if (!presence_read_key(key, &name, &entry))
        return;
    toolset = presence_find(presence, name);
    known = toolset ? presence_entry(toolset, entry.incarnation) : NULL;
    if (known)
        drop_entry(presence, toolset, (size_t)(known - toolset->entries));
}

/* Watches again after a delay, and then receives the whole current state. */
static void watch_again(struct net_timer *timer)
{
    struct gw_presence *presence = peg__container_of(timer, struct gw_presence, again);

    bus_map_unwatch(presence->bus, BUS_MAP_PROVIDERS, &presence->watch);
    bus_map_watch(presence->bus, BUS_MAP_PROVIDERS, &presence->watch);
}

static void handle_failure(struct gw_presence *presence, peg_str key, peg_status status)
{
    if (status == PEG_ENOMEM && !presence->again.is_armed)
        bus_arm(presence->bus, &presence->again,
                bus_now_ns(presence->bus) + AGAIN_MS * PEG_NS_PER_MS);
    else if (status == PEG_ELIMIT)
        peg__log(PEG_LOG_WARN, "provider_ignored",
                 "more than %d providers are attached: one is ignored", PEG_LIMIT_GATEWAY_PRESENT);
    else if (status == PEG_EPARSE)
        peg__log(PEG_LOG_WARN, "provider_ignored",
                 "an entry of the map of providers is not ours: %zu bytes of key", key.len);
}

/* Changes come in the order of their revisions. */
static void note_known(struct gw_presence *presence, uint64_t revision)
{
    atomic_ullong *known = presence->options.known;

    if (!known)
        return;
    known += presence->bus->self.loop;
    if (revision > atomic_load_explicit(known, memory_order_relaxed))
        atomic_store_explicit(known, revision, memory_order_release);
}

static void on_map_change(struct bus_watch *watch, const struct bus_change *change)
{
    struct gw_presence *presence = peg__container_of(watch, struct gw_presence, watch);
    struct gw_provider_entry entry;
    peg_str toolset;
    peg_status status = PEG_OK;

    if (change->is_snapshot)
        presence->is_listening = true;
    if (change->value) {
        status = presence_read(change->key, change->value, &toolset, &entry);
        entry.revision = change->revision;
        entry.is_reported = presence->is_listening;
        if (!status)
            status = put_entry(presence, toolset, &entry);
        if (!status && !bus_address_equal(entry.address, presence->bus->self))
            presence_own_on_written(presence, change->key, &entry);
    } else {
        remove_entry(presence, change->key);
    }
    if (status)
        handle_failure(presence, change->key, status);
    note_known(presence, change->revision);
    arm_stale_check(presence);
    presence_notify(presence);
}

/* What was there before a reset and was not told again is gone. */
static void on_map_ready(struct bus_watch *watch)
{
    struct gw_presence *presence = peg__container_of(watch, struct gw_presence, watch);

    PEG__MAP_EACH(&presence->toolsets, entry)
    {
        struct presence_toolset *toolset = entry->value;

        for (size_t i = toolset->n; i > 0; i--) {
            struct gw_provider_entry *known = &toolset->entries[i - 1];

            if (!known->is_reported)
                drop_entry(presence, toolset, i - 1);
            else
                known->is_reported = false;
        }
    }
    presence->is_listening = false;
    presence_own_ready(presence);
    presence_notify(presence);
}

/* ---- its life ---- */

peg_status gw_presence_new(struct bus *bus, const struct gw_presence_options *options,
                           void (*on_change)(void *user, peg_str toolset), void *user,
                           struct gw_presence **ret_presence, peg_error *reterr)
{
    struct gw_presence *presence = peg__alloc_zero(1, sizeof(*presence));

    if (!presence)
        return peg__fail_nomem(reterr);
    presence->bus = bus;
    presence->options = *options;
    presence->staleness_ms = ((int64_t)options->missed_pings + 1) * options->ping_interval_ms;
    print_ms(presence->staleness_ms, presence->staleness);
    presence->on_change = on_change;
    presence->user = user;
    presence->toolsets = (struct peg__map)PEG__MAP(PEG_LIMIT_GATEWAY_PRESENT);
    presence->changed_end = &presence->changed;
    presence->look.fn = check_stale;
    presence->again.fn = watch_again;
    presence->watch.on_change = on_map_change;
    presence->watch.on_ready = on_map_ready;
    presence_own_init(presence);
    *ret_presence = presence;
    bus_map_watch(bus, BUS_MAP_PROVIDERS, &presence->watch);
    return PEG_OK;
}

struct gw_presence *gw_presence_free(struct gw_presence *presence)
{
    if (!presence)
        return NULL;
    bus_map_unwatch(presence->bus, BUS_MAP_PROVIDERS, &presence->watch);
    bus_disarm(presence->bus, &presence->look);
    bus_disarm(presence->bus, &presence->again);
    presence_own_free(presence);
    PEG__MAP_EACH(&presence->toolsets, entry)
    free_toolset(presence, entry->value);
    peg__map_free(&presence->toolsets);
    peg__free(presence);
    return NULL;
}
