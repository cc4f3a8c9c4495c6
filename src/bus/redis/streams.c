/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Streams and the keys beside them. A call is one piece of six commands, so that its result cannot
 * come before its stream is watched; each later read is one more round trip.
 */

#include <string.h>

#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/redis/internal.h"
#include "bus/redis/streams.h"

bool bus_can_track(const struct bus *bus)
{
    return ((const struct redis_bus *)bus)->can_track;
}

/* ---- asking and answering ------------------------------------------------------------------ */

/* The owner may free the wait. */
static void on_stream_answer(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct bus_stream_wait *own = (struct bus_stream_wait *)wait;
    struct bus_stream_reply reply = own->reply;

    if (answer->status)
        reply = (struct bus_stream_reply){.status = answer->status};
    reply.epoch = answer->epoch;
    own->fn(own, &reply);
}

struct redis_command *redis_stream_command(struct redis_bus *bus, struct bus_stream_wait *wait,
                                           void (*fn)(struct redis_request *request,
                                                      const struct resp_value *reply))
{
    if (!wait)
        return redis_command_new(bus, NULL, fn);
    wait->wait.fn = on_stream_answer;
    wait->reply = (struct bus_stream_reply){.status = PEG_OK};
    return redis_command_new(bus, &wait->wait, fn);
}

struct bus_stream_reply *redis_stream_reply(struct redis_command *command)
{
    return command->wait ? &((struct bus_stream_wait *)command->wait)->reply : NULL;
}

static void give_status(struct redis_command *command, peg_status status)
{
    struct bus_stream_reply *reply = redis_stream_reply(command);

    if (reply)
        reply->status = status;
    redis_command_give(command);
}

void redis_stream_on_text(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct bus_stream_reply *own = redis_stream_reply(command);

    if (redis_command_is_failed(command, reply))
        return;
    if (own && reply->kind == RESP_TEXT)
        own->text = reply->text;
    give_status(command, reply->kind == RESP_NULL ? PEG_ENOTFOUND : PEG_OK);
}

/* ---- commands ------------------------------------------------------------------------------ */

static void put_add(struct peg__buf *out, const struct bus_stream_add *add)
{
    resp_put_command(out, add->makes_stream ? 7 : 8);
    resp_puts(out, "XADD");
    resp_put(out, add->key);
    if (!add->makes_stream)
        resp_puts(out, "NOMKSTREAM");
    resp_puts(out, "*");
    resp_puts(out, "n");
    resp_put(out, add->name);
    resp_puts(out, "p");
    resp_put(out, add->payload);
}

/* What the next command reads is tracked. */
static void put_caching(struct peg__buf *out)
{
    resp_put_command(out, 3);
    resp_puts(out, "CLIENT");
    resp_puts(out, "CACHING");
    resp_puts(out, "YES");
}

void redis_put_expire(struct peg__buf *out, peg_str key, int64_t seconds)
{
    resp_put_command(out, 4);
    resp_puts(out, "EXPIRE");
    resp_put(out, key);
    resp_put_number(out, seconds);
    resp_puts(out, "NX");
}

static void put_mapping(struct peg__buf *out, const struct bus_stream_call *call)
{
    resp_put_command(out, 5);
    resp_puts(out, "SET");
    resp_put(out, call->mapping_key);
    resp_put(out, call->mapping_value);
    resp_puts(out, "EX");
    resp_put_number(out, call->mapping_s);
}

/* ---- calls --------------------------------------------------------------------------------- */

void bus_stream_begin_call(struct bus *bus, const struct bus_stream_call *call,
                           struct bus_stream_wait *wait)
{
    const struct bus_stream_add init = {.key = call->result_key,
                                        .name = PEG_LIT("init"),
                                        .payload = PEG_LIT("{}"),
                                        .makes_stream = true};
    const struct bus_stream_add add = {.key = call->request_key,
                                       .name = call->request_name,
                                       .payload = call->request,
                                       .makes_stream = true};
    struct redis_bus *self = redis_bus_of(bus);
    struct peg__buf *out = &self->queue.out;
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command = redis_stream_command(self, wait, redis_stream_on_text);

    if (!command)
        return;
    if (call->mapping_key.len) {
        put_mapping(out, call);
        command->request.n_skipped++;
    }
    put_add(out, &init);
    redis_put_expire(out, call->result_key, call->result_s);
    command->request.n_skipped++;
    if (call->request_key.len) {
        put_caching(out);
        resp_put_command(out, 2);
        resp_puts(out, "EXISTS");
        resp_put(out, call->result_key);
        put_add(out, &add);
        command->request.n_skipped += 3;
    }
    redis_command_ask(command, mark);
}

void bus_stream_drop_call(struct bus *bus, peg_str result_key, peg_str mapping_key)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->late);
    struct redis_command *command = redis_command_new(self, NULL, redis_command_on_done);

    if (!command)
        return; /* both have an expiry */
    resp_put_command(&self->late.out, 3);
    resp_puts(&self->late.out, "UNLINK");
    resp_put(&self->late.out, result_key);
    resp_put(&self->late.out, mapping_key);
    redis_command_ask_late(command, mark);
}

/* ---- withdrawal ---------------------------------------------------------------------------- */

bool redis_stream_id_parse(peg_str text, struct redis_stream_id *ret_id)
{
    const char *dash = text.len ? (const char *)memchr(text.ptr, '-', text.len) : NULL;
    const size_t len = dash ? (size_t)(dash - text.ptr) : 0;

    return dash && resp_parse_number(peg__strn(text.ptr, len), &ret_id->ms) &&
           resp_parse_number(peg__str_from(text, len + 1), &ret_id->sequence);
}

bool redis_stream_id_is_before(struct redis_stream_id a, struct redis_stream_id b)
{
    return a.ms < b.ms || (a.ms == b.ms && a.sequence < b.sequence);
}

/* No group has been given the entry. What cannot be read proves nothing, nor do groups that are
 * gone. */
static bool is_behind_groups(const struct resp_value *groups, struct redis_stream_id entry)
{
    const struct resp_value *group;

    if (!groups || groups->kind != RESP_LIST || groups->n_items == 0)
        return false;
    group = groups + 1;
    for (size_t i = 0; i < groups->n_items; i++, group = resp_next(group)) {
        struct redis_stream_id last;

        if (!redis_stream_id_parse(resp_member(group, "last-delivered-id"), &last) ||
            !redis_stream_id_is_before(last, entry))
            return false;
    }
    return true;
}

static void on_withdrawn(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct bus_stream_reply *own = redis_stream_reply(command);
    const struct resp_value *removed;
    struct redis_stream_id entry;

    if (redis_command_is_failed(command, reply))
        return;
    removed = resp_item(reply, 0);
    if (own)
        own->is_undelivered =
            removed && removed->kind == RESP_INTEGER && removed->integer == 1 &&
            redis_stream_id_parse(peg__strn(command->text, command->text_len), &entry) &&
            is_behind_groups(resp_item(reply, 1), entry);
    redis_command_give_with_epoch(command);
}

void bus_stream_withdraw(struct bus *bus, peg_str key, peg_str id, struct bus_stream_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    struct peg__buf *out = &self->queue.out;
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command = redis_stream_command(self, wait, on_withdrawn);

    if (!command)
        return;
    if (!redis_command_keep(command, id)) {
        redis_command_reject(command, PEG_ENOMEM);
        return;
    }
    command->request.n_skipped = 3;
    resp_put_command(out, 1);
    resp_puts(out, "MULTI");
    resp_put_command(out, 3);
    resp_puts(out, "XDEL");
    resp_put(out, key);
    resp_put(out, id);
    resp_put_command(out, 3);
    resp_puts(out, "XINFO");
    resp_puts(out, "GROUPS");
    resp_put(out, key);
    resp_put_command(out, 1);
    resp_puts(out, "EXEC");
    redis_command_ask_in_group(command, mark);
}

/* ---- entries ------------------------------------------------------------------------------- */

void bus_stream_add(struct bus *bus, const struct bus_stream_add *add, struct bus_stream_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command = redis_stream_command(self, wait, redis_stream_on_text);

    if (!command)
        return;
    put_add(&self->queue.out, add);
    redis_command_ask(command, mark);
}

peg_str redis_text_at(const struct resp_value *list, size_t i)
{
    const struct resp_value *item = resp_item(list, i);

    return item && item->kind == RESP_TEXT ? item->text : (peg_str){"", 0};
}

/* An entry of others may have any fields: what it lacks is empty. */
static struct bus_stream_entry read_entry(const struct resp_value *item)
{
    const struct resp_value *fields = resp_item(item, 1);
    struct bus_stream_entry entry = {
        .id = redis_text_at(item, 0), .name = {"", 0}, .payload = {"", 0}};

    for (size_t i = 0; fields && resp_is_list(fields) && i + 1 < fields->n_items; i += 2) {
        const peg_str field = redis_text_at(fields, i);

        if (peg__str_is(field, "n"))
            entry.name = redis_text_at(fields, i + 1);
        else if (peg__str_is(field, "p"))
            entry.payload = redis_text_at(fields, i + 1);
    }
    return entry;
}

/*
 * It is not known how large the entries are, and Redis cuts off a subscriber for whom too much
 * waits: then all reads are asked for again. So there are PEG_LIMIT_REDIS_READS at once as long as
 * that goes well, and one, which always fits, behind a lost connection.
 */
static void ask_reads(struct redis_bus *bus);

static void end_read(struct redis_bus *bus, bool is_connected)
{
    bus->n_reads--;
    if (!is_connected)
        return;
    if (bus->max_reads < PEG_LIMIT_REDIS_READS)
        bus->max_reads *= 2;
    if (!bus->is_dead)
        ask_reads(bus);
}

void redis_drop_reads(struct redis_bus *bus)
{
    bus->max_reads = 1;
    redis_commands_reject(&bus->reads, PEG_EIO);
}

static void give_entries(struct redis_command *command, const struct resp_value *reply)
{
    struct bus_stream_reply *own = redis_stream_reply(command);
    struct bus_stream_entry entries[BUS_STREAM_ENTRIES];
    const struct resp_value *item;

    if (redis_command_is_failed(command, reply))
        return;
    item = reply + 1;
    for (size_t i = 0; own && reply->kind == RESP_LIST && i < reply->n_items; i++) {
        if (own->n_entries == BUS_STREAM_ENTRIES)
            break;
        entries[own->n_entries++] = read_entry(item);
        item = resp_next(item);
    }
    if (own)
        own->entries = entries;
    redis_command_give(command);
}

static void on_entries(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;

    redis_bus_hold(bus);
    give_entries(command, reply);
    end_read(bus, reply != NULL);
    redis_bus_release(bus);
}

/* `text` of the command: the key, a NUL, the entry behind which to read. */
static void put_read(struct peg__buf *out, peg_str text)
{
    const size_t len = strlen(text.ptr);
    const peg_str after = peg__str_from(text, len + 1);

    put_caching(out);
    resp_put_command(out, 6);
    resp_puts(out, "XRANGE");
    resp_put(out, peg__strn(text.ptr, len));
    if (after.len) {
        resp_begin(out, after.len + 1);
        peg__buf_puts(out, "(");
        peg__buf_str(out, after);
        resp_end(out);
    } else {
        resp_puts(out, "-");
    }
    resp_puts(out, "+");
    resp_puts(out, "COUNT");
    resp_put_number(out, BUS_STREAM_ENTRIES);
}

static void ask_reads(struct redis_bus *bus)
{
    while (bus->n_reads < bus->max_reads && bus->reads.first) {
        struct redis_command *command = redis_commands_take(&bus->reads);
        const size_t mark = redis_queue_mark(&bus->queue);
        peg_status status;

        put_read(&bus->queue.out, peg__strn(command->text, command->text_len));
        status = redis_queue_add(&bus->queue, mark, &command->request);
        if (status) {
            redis_command_reject(command, status);
            continue;
        }
        bus->n_reads++;
        net_loop_later(bus->loop, &bus->flush);
    }
}

void bus_stream_read(struct bus *bus, peg_str key, peg_str after, struct bus_stream_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    struct redis_command *command = redis_stream_command(self, wait, on_entries);

    if (!command)
        return;
    command->request.n_skipped = 1;
    command->text_len = key.len + 1 + after.len;
    command->text = (char *)peg__alloc(command->text_len + 1);
    if (!command->text) {
        redis_command_reject(command, PEG_ENOMEM);
        return;
    }
    memcpy(command->text, key.ptr, key.len);
    command->text[key.len] = '\0';
    memcpy(command->text + key.len + 1, after.ptr, after.len);
    command->text[command->text_len] = '\0';
    redis_commands_append(&self->reads, command);
    ask_reads(self);
}

static void on_group(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    if ((reply && resp_is_error(reply, "BUSYGROUP")) || !redis_command_is_failed(command, reply))
        redis_command_give(command);
}

void bus_stream_make_group(struct bus *bus, peg_str key, peg_str group, const char *start,
                           struct bus_stream_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    struct peg__buf *out = &self->queue.out;
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command = redis_stream_command(self, wait, on_group);

    if (!command)
        return;
    resp_put_command(out, 6);
    resp_puts(out, "XGROUP");
    resp_puts(out, "CREATE");
    resp_put(out, key);
    resp_put(out, group);
    resp_puts(out, start);
    resp_puts(out, "MKSTREAM");
    redis_command_ask(command, mark);
}

/* ---- tracking ------------------------------------------------------------------------------ */

peg_status bus_track(struct bus *bus, peg_str key, struct bus_tracked *tracked)
{
    struct redis_bus *self = redis_bus_of(bus);
    const peg_status status = peg__map_add(&self->tracked, key, tracked);

    if (status)
        return status;
    tracked->key = peg__map_find(&self->tracked, key)->name;
    PEG_LIST_PUSH(self->first_tracked, tracked, next, prev);
    return PEG_OK;
}

void bus_untrack(struct bus *bus, struct bus_tracked *tracked)
{
    struct redis_bus *self = redis_bus_of(bus);

    if (!tracked->key.ptr)
        return;
    if (self->tracked_cursor == tracked)
        self->tracked_cursor = tracked->next;
    PEG_LIST_REMOVE(self->first_tracked, tracked, next, prev);
    peg__map_remove(&self->tracked, tracked->key, NULL);
    tracked->key = (peg_str){NULL, 0};
}

/* New ones come to the front, and are not reported. */
void redis_report_tracked(struct redis_bus *bus)
{
    bus->tracked_cursor = bus->first_tracked;
    while (!bus->is_dead && bus->tracked_cursor) {
        struct bus_tracked *tracked = bus->tracked_cursor;

        bus->tracked_cursor = tracked->next;
        tracked->fn(tracked);
    }
}

/* No list of keys: the server has lost all of them. */
void redis_on_invalidate(struct redis_bus *bus, const struct resp_value *keys)
{
    if (!keys || !resp_is_list(keys)) {
        redis_report_tracked(bus);
        return;
    }
    for (size_t i = 0; !bus->is_dead && i < keys->n_items; i++) {
        struct bus_tracked *tracked =
            (struct bus_tracked *)peg__map_get(&bus->tracked, redis_text_at(keys, i));

        if (tracked)
            tracked->fn(tracked);
    }
}
