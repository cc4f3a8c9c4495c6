/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The loop's copy of each map that is watched.
 *
 *   peg:<name>:map:<map>         hash: key -> "<revision>:<value>"
 *   peg:<name>:map:<map>:index   sorted set: 'k' key at its revision, and 'r' at the map's
 *   peg:<name>:map:<map>:hints   channel: "<before> <revision> <how> <length> <key><value>", how
 *                                being s(et), d(elete), or f(etch): it is too large to be published
 *
 * Loading: the index, then the values a few at a time. Replies and published changes come in the
 * order in which the server made them, on one connection: what comes before the index is in it,
 * and what comes behind it is applied at once, whichever values are still to be fetched, because a
 * later revision wins. A change whose `before` is not what is known shows that one was missed: then
 * the map is loaded again, and its watches hear all of it again.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/redis/internal.h"

static const char *const values_keys[BUS_N_MAPS] = {"map:toolsets", "map:providers", "map:nodes"};
static const char *const index_keys[BUS_N_MAPS] = {"map:toolsets:index", "map:providers:index",
                                                   "map:nodes:index"};
const char *const redis_map_channels[BUS_N_MAPS] = {"map:toolsets:hints", "map:providers:hints",
                                                    "map:nodes:hints"};

static void fetch_next(struct redis_bus *bus, enum bus_map number);

/* ---- reporting ----------------------------------------------------------------------------- */

/* A table has something to report. */
static void wake_bus(void *owner)
{
    struct redis_bus *bus = (struct redis_bus *)owner;

    net_loop_later(bus->loop, &bus->report);
}

/* A watch may free the bus. */
static void report_map(struct redis_bus *bus, struct redis_map *map)
{
    redis_bus_hold(bus);
    while (!bus->is_dead && map->state == REDIS_MAP_LOADED &&
           bus_map_table_notify(&map->table, bus))
        ;
    redis_bus_release(bus);
}

void redis_maps_report(struct redis_bus *bus)
{
    redis_bus_hold(bus);
    for (unsigned i = 0; i < BUS_N_MAPS && !bus->is_dead; i++)
        report_map(bus, &bus->maps[i]);
    redis_bus_release(bus);
}

/* ---- loading ------------------------------------------------------------------------------- */

static void doom_for_memory(struct redis_bus *bus)
{
    peg_error error;

    peg__fail_nomem(&error);
    if (bus->session)
        redis_session_doom(bus->session, &error);
}

static void apply_change(struct redis_bus *bus, struct redis_map *map,
                         const struct bus_map_write *write, uint64_t revision)
{
    if (bus_map_table_apply(&map->table, write, revision))
        doom_for_memory(bus);
}

/* "<revision>:<value>". */
static void apply_stored(struct redis_bus *bus, struct redis_map *map, peg_str key, peg_str stored)
{
    const char *colon = stored.len ? (const char *)memchr(stored.ptr, ':', stored.len) : NULL;
    struct bus_map_write write = {.key = key};
    uint64_t revision;

    if (!colon ||
        !resp_parse_number(peg__strn(stored.ptr, (size_t)(colon - stored.ptr)), &revision))
        return;
    write.value = peg__blob_copy(peg__str_from(stored, (size_t)(colon - stored.ptr) + 1));
    if (write.value)
        apply_change(bus, map, &write, revision);
    else
        doom_for_memory(bus);
    peg__blob_unref(write.value);
}

/* All is known: reports it, and then answers those who waited for that. */
static void end_loading(struct redis_bus *bus, struct redis_map *map)
{
    struct redis_commands held = map->held;
    struct redis_command *command;

    redis_bus_hold(bus);
    map->state = REDIS_MAP_LOADED;
    map->held = (struct redis_commands){0};
    peg__buf_free(&map->index);
    map->index.max = PEG_LIMIT_REDIS_REPLY_BYTES;
    report_map(bus, map);
    while ((command = redis_commands_take(&held)))
        redis_command_give(command);
    redis_bus_release(bus);
}

/* The next key of the index; false: there is none. */
static bool next_key(struct redis_map *map, peg_str *ret_key)
{
    uint32_t len;

    if (map->index_at >= map->index.len)
        return false;
    memcpy(&len, map->index.ptr + map->index_at, sizeof(len));
    *ret_key = peg__strn(map->index.ptr + map->index_at + sizeof(len), len);
    map->index_at += sizeof(len) + len;
    return true;
}

/* `lease_ms` of the command: where its keys begin in the index. */
static void on_values(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;
    const enum bus_map number = command->map;
    struct redis_map *map = &bus->maps[number];
    const struct resp_value *item;
    const bool is_current =
        command->generation == map->generation && map->state == REDIS_MAP_FETCHED;
    peg_str key;

    if (redis_command_is_failed(command, reply))
        return;
    item = reply + 1;
    if (is_current && reply->kind == RESP_LIST) {
        map->index_at = (size_t)command->lease_ms;
        for (size_t i = 0; i < reply->n_items && next_key(map, &key); i++, item = resp_next(item)) {
            if (item->kind == RESP_TEXT)
                apply_stored(bus, map, key, item->text);
        }
    }
    redis_command_give(command);
    if (is_current)
        fetch_next(bus, number);
}

static void fetch_next(struct redis_bus *bus, enum bus_map number)
{
    struct redis_map *map = &bus->maps[number];
    const size_t begin = map->index_at;
    struct redis_command *command;
    size_t n = 0;
    size_t mark;
    peg_str key;

    while (n < PEG_LIMIT_REDIS_FETCH && next_key(map, &key))
        n++;
    map->index_at = begin;
    if (n == 0) {
        end_loading(bus, map);
        return;
    }
    command = redis_command_new(bus, NULL, on_values);
    if (!command) {
        doom_for_memory(bus);
        return;
    }
    command->map = number;
    command->generation = map->generation;
    command->lease_ms = (int64_t)begin;
    mark = redis_queue_mark(&bus->queue);
    resp_put_command(&bus->queue.out, n + 2);
    resp_puts(&bus->queue.out, "HMGET");
    redis_put_key(bus, &bus->queue.out, values_keys[number]);
    for (size_t i = 0; i < n && next_key(map, &key); i++)
        resp_put(&bus->queue.out, key);
    redis_command_ask(command, mark);
}

/* Pairs of a key and its revision, by revision. */
static peg_status keep_index(struct redis_map *map, const struct resp_value *reply)
{
    const struct resp_value *pair = reply + 1;

    peg__buf_clear(&map->index);
    map->index_at = 0;
    map->revision = 0;
    for (size_t i = 0; i < reply->n_items; i++, pair = resp_next(pair)) {
        const struct resp_value *key = resp_item(pair, 0);
        const struct resp_value *score = resp_item(pair, 1);
        uint32_t len;

        if (!key || !score || key->kind != RESP_TEXT || key->text.len == 0)
            continue;
        if (key->text.ptr[0] == 'r') {
            if (score->kind != RESP_TEXT || !resp_parse_number(score->text, &map->revision))
                return PEG_EPARSE;
            continue;
        }
        len = (uint32_t)(key->text.len - 1);
        peg__buf_add(&map->index, &len, sizeof(len));
        peg__buf_str(&map->index, peg__str_from(key->text, 1));
    }
    return map->index.status;
}

/* The table begins anew: its watches hear everything again. */
static void forget_table(struct redis_map *map)
{
    bus_map_table_lose(&map->table);
    map->table.revision = 0;
    for (struct bus_watch *watch = map->table.watches; watch; watch = watch->next)
        watch->begun_at = 0;
}

static void on_index(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;
    const enum bus_map number = command->map;
    struct redis_map *map = &bus->maps[number];
    const bool is_current = command->generation == map->generation;

    if (redis_command_is_failed(command, reply))
        return;
    redis_bus_hold(bus);
    if (is_current && (reply->kind != RESP_LIST || keep_index(map, reply))) {
        doom_for_memory(bus);
    } else if (is_current) {
        forget_table(map);
        map->state = REDIS_MAP_FETCHED;
        fetch_next(bus, number);
    }
    redis_command_give(command);
    redis_bus_release(bus);
}

static void load_map(struct redis_bus *bus, enum bus_map number)
{
    struct redis_map *map = &bus->maps[number];
    const size_t mark = redis_queue_mark(&bus->queue);
    struct redis_command *command = redis_command_new(bus, NULL, on_index);

    map->generation++;
    map->state = REDIS_MAP_ASKED;
    if (!command) {
        doom_for_memory(bus);
        return;
    }
    command->map = number;
    command->generation = map->generation;
    resp_put_command(&bus->queue.out, 5);
    resp_puts(&bus->queue.out, "ZRANGE");
    redis_put_key(bus, &bus->queue.out, index_keys[number]);
    resp_puts(&bus->queue.out, "0");
    resp_puts(&bus->queue.out, "-1");
    resp_puts(&bus->queue.out, "WITHSCORES");
    redis_command_ask(command, mark);
}

void redis_maps_load(struct redis_bus *bus)
{
    for (unsigned i = 0; i < BUS_N_MAPS; i++) {
        if (bus->maps[i].table.watches)
            load_map(bus, (enum bus_map)i);
    }
}

/* Those that wait for a loading get an error. */
void redis_maps_lose(struct redis_bus *bus)
{
    redis_bus_hold(bus);
    for (unsigned i = 0; i < BUS_N_MAPS; i++) {
        struct redis_map *map = &bus->maps[i];

        map->state = REDIS_MAP_UNKNOWN;
        map->generation++;
        redis_commands_reject(&map->held, PEG_EIO);
    }
    redis_bus_release(bus);
}

/* ---- changes ------------------------------------------------------------------------------- */

/* A change and what it follows. False: one before it was missed, and the map is loaded again. */
static bool follow_change(struct redis_bus *bus, enum bus_map number, uint64_t before,
                          uint64_t revision)
{
    struct redis_map *map = &bus->maps[number];

    if (map->revision != before) {
        load_map(bus, number);
        return false;
    }
    map->revision = revision;
    return true;
}

static bool is_followed(const struct redis_map *map)
{
    return map->state == REDIS_MAP_FETCHED || map->state == REDIS_MAP_LOADED;
}

/* Takes a number and the space behind it off the text. */
static bool take_number(peg_str *text, uint64_t *ret_number)
{
    const char *space = text->len ? (const char *)memchr(text->ptr, ' ', text->len) : NULL;
    const size_t len = space ? (size_t)(space - text->ptr) : 0;

    if (!space || !resp_parse_number(peg__strn(text->ptr, len), ret_number))
        return false;
    *text = peg__str_from(*text, len + 1);
    return true;
}

static void on_fetched(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;
    struct redis_map *map = &bus->maps[command->map];

    if (redis_command_is_failed(command, reply))
        return;
    if (reply->kind == RESP_TEXT && is_followed(map) && command->generation == map->generation)
        apply_stored(bus, map, peg__strn(command->text, command->text_len), reply->text);
    redis_command_give(command);
}

static void fetch_one(struct redis_bus *bus, enum bus_map number, peg_str key)
{
    const size_t mark = redis_queue_mark(&bus->queue);
    struct redis_command *command = redis_command_new(bus, NULL, on_fetched);

    if (!command || !redis_command_keep(command, key)) {
        if (command)
            redis_command_give(command);
        doom_for_memory(bus);
        return;
    }
    command->map = number;
    command->generation = bus->maps[number].generation;
    resp_put_command(&bus->queue.out, 3);
    resp_puts(&bus->queue.out, "HGET");
    redis_put_key(bus, &bus->queue.out, values_keys[number]);
    resp_put(&bus->queue.out, key);
    redis_command_ask(command, mark);
}

/* Malformed ones were not written by us: the next renewal finds what they stood for. */
void redis_on_map_change(struct redis_bus *bus, enum bus_map number, peg_str bytes)
{
    struct redis_map *map = &bus->maps[number];
    struct bus_map_write write = {.value = NULL};
    uint64_t before;
    uint64_t revision;
    uint64_t len;
    char how;

    if (!is_followed(map) || !take_number(&bytes, &before) || !take_number(&bytes, &revision) ||
        bytes.len < 2)
        return;
    how = bytes.ptr[0];
    bytes = peg__str_from(bytes, 2);
    if (!take_number(&bytes, &len) || len > bytes.len || revision <= map->revision ||
        !follow_change(bus, number, before, revision))
        return;
    write.key = peg__strn(bytes.ptr, (size_t)len);
    if (how == 'f') {
        fetch_one(bus, number, write.key);
        return;
    }
    if (how == 's') {
        write.value = peg__blob_copy(peg__str_from(bytes, (size_t)len));
        if (!write.value) {
            doom_for_memory(bus);
            return;
        }
    }
    apply_change(bus, map, &write, revision);
    peg__blob_unref(write.value);
}

/* ---- comparing ----------------------------------------------------------------------------- */

static void on_compared(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;
    struct redis_map *map = &bus->maps[command->map];
    uint64_t revision = 0;

    if (redis_command_is_failed(command, reply))
        return;
    if (is_followed(map) && command->generation == map->generation &&
        (reply->kind == RESP_NULL || resp_parse_number(reply->text, &revision)) &&
        revision != map->revision)
        load_map(bus, command->map);
    redis_command_give(command);
}

void redis_maps_compare(struct redis_bus *bus)
{
    for (unsigned i = 0; i < BUS_N_MAPS; i++) {
        const size_t mark = redis_queue_mark(&bus->queue);
        struct redis_command *command;

        if (!is_followed(&bus->maps[i]))
            continue;
        command = redis_command_new(bus, NULL, on_compared);
        if (!command)
            return;
        command->map = (enum bus_map)i;
        command->generation = bus->maps[i].generation;
        resp_put_command(&bus->queue.out, 3);
        resp_puts(&bus->queue.out, "ZSCORE");
        redis_put_key(bus, &bus->queue.out, index_keys[i]);
        resp_puts(&bus->queue.out, "r");
        redis_command_ask(command, mark);
    }
}

/* ---- writing ------------------------------------------------------------------------------- */

static int64_t integer_at(const struct resp_value *list, size_t i)
{
    const struct resp_value *item = resp_item(list, i);

    return item && item->kind == RESP_INTEGER && item->integer >= 0 ? item->integer : 0;
}

/* The loop's own change: its watches hear of it before it is answered. */
static void on_set(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;
    struct redis_map *map = &bus->maps[command->map];
    const struct bus_map_write write = {.key = {command->text, command->text_len},
                                        .value = command->value};
    uint64_t revision;

    if (redis_command_is_failed(command, reply))
        return;
    if (integer_at(reply, 0) == 2) {
        redis_command_reject(command, PEG_ELIMIT);
        return;
    }
    revision = (uint64_t)integer_at(reply, 3);
    command->answer.written = integer_at(reply, 0) == 1;
    command->answer.revision = (uint64_t)integer_at(reply, 1);
    redis_bus_hold(bus);
    if (is_followed(map) && command->answer.written && revision > map->revision &&
        follow_change(bus, command->map, (uint64_t)integer_at(reply, 2), revision))
        apply_change(bus, map, &write, revision);
    report_map(bus, map);
    if (!bus->is_dead && (map->state == REDIS_MAP_ASKED || map->state == REDIS_MAP_FETCHED))
        redis_commands_append(&map->held, command);
    else
        redis_command_give(command);
    redis_bus_release(bus);
}

/* What nodes and providers say of themselves is needed for all that runs, and small; what is
 * deleted makes room. */
static void put_set(struct redis_bus *bus, enum bus_map map, const struct bus_map_write *write)
{
    const bool may_be_refused = map == BUS_MAP_TOOLSETS && write->value;
    struct peg__buf *out = &bus->queue.out;

    redis_put_script(bus, may_be_refused ? REDIS_MAP_SET : REDIS_MAP_SET_ALWAYS, 2, 7);
    redis_put_key(bus, out, values_keys[map]);
    redis_put_key(bus, out, index_keys[map]);
    resp_put(out, write->key);
    if (write->expected == BUS_ANY_REVISION)
        resp_puts(out, "*");
    else
        resp_put_number(out, (int64_t)write->expected);
    resp_puts(out, write->value ? "s" : "d");
    resp_put(out, peg__blob_str(write->value));
    redis_put_channel(bus, out, redis_map_channels[map]);
    resp_put_number(out, PEG_LIMIT_REDIS_INLINE_BYTES);
    resp_put_number(out, PEG_LIMIT_BUS_MAP_KEYS);
}

void redis_map_set(struct bus *bus, enum bus_map map, peg_str key, struct peg__blob *value,
                   uint64_t expected, struct bus_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    const struct bus_map_write write = {.key = key, .value = value, .expected = expected};
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command = redis_command_new(self, wait, on_set);
    const size_t len = value ? value->len : 0;

    if (!command)
        return;
    if (len > PEG_LIMIT_REDIS_MAP_VALUE_BYTES ||
        self->maps[map].table.bytes + len > PEG_LIMIT_BUS_MAP_BYTES) {
        redis_command_reject(command, PEG_ELIMIT);
        return;
    }
    command->map = map;
    command->value = peg__blob_ref(value);
    if (!redis_command_keep(command, key)) {
        redis_command_reject(command, PEG_ENOMEM);
        return;
    }
    put_set(self, map, &write);
    redis_command_ask(command, mark);
}

/* ---- watching ------------------------------------------------------------------------------ */

void redis_map_watch(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    struct redis_bus *self = redis_bus_of(bus);

    bus_map_table_watch(&self->maps[map].table, watch, self);
    if (self->is_ready && self->maps[map].state == REDIS_MAP_UNKNOWN)
        load_map(self, map);
}

void redis_map_unwatch(struct bus *bus, enum bus_map map, struct bus_watch *watch)
{
    if (watch->owner)
        bus_map_table_unwatch(&redis_bus_of(bus)->maps[map].table, watch);
}

void redis_maps_init(struct redis_bus *bus)
{
    for (unsigned i = 0; i < BUS_N_MAPS; i++) {
        bus_map_table_init(&bus->maps[i].table, wake_bus);
        bus->maps[i].index.max = PEG_LIMIT_REDIS_REPLY_BYTES;
    }
}

void redis_maps_free(struct redis_bus *bus)
{
    for (unsigned i = 0; i < BUS_N_MAPS; i++) {
        bus_map_table_leave(&bus->maps[i].table, bus);
        bus_map_table_free(&bus->maps[i].table);
        peg__buf_free(&bus->maps[i].index);
    }
}
