/* SPDX-License-Identifier: Apache-2.0 */

/* What keeps streams short and a server clean: trimming, and keys by pattern. */

#include <string.h>

#include "base/mem.h"
#include "base/text/str.h"
#include "bus/redis/internal.h"
#include "bus/redis/streams.h"

/* ---- trimming ------------------------------------------------------------------------------ */

/*
 * The lowest entry that some group still needs: the one behind the last that it got, or the first
 * that it has not acknowledged. What is delivered meanwhile is above it.
 *
 *   XINFO GROUPS -> XPENDING of each group that has some -> XTRIM MINID ~
 */
enum { MAX_TRIM_GROUPS = 8 };

struct trim {
    struct redis_bus *bus;
    struct redis_stream_id least;
    unsigned n_open; /* commands without an answer */
    bool is_off;     /* something cannot be read: nothing is removed */
    size_t key_len;
    char key[];
};

static void lower(struct trim *trim, struct redis_stream_id id)
{
    if (redis_stream_id_is_before(id, trim->least))
        trim->least = id;
}

static void put_trim(struct trim *trim)
{
    struct redis_bus *bus = trim->bus;
    struct peg__buf *out = &bus->queue.out;
    const size_t mark = redis_queue_mark(&bus->queue);
    struct redis_command *command = redis_command_new(bus, NULL, redis_command_on_done);
    char text[48];
    char *at = text;

    if (!command)
        return;
    at = peg__put_decimal(at, trim->least.ms);
    *at++ = '-';
    at = peg__put_decimal(at, trim->least.sequence);
    resp_put_command(out, 5);
    resp_puts(out, "XTRIM");
    resp_put(out, peg__strn(trim->key, trim->key_len));
    resp_puts(out, "MINID");
    resp_puts(out, "~");
    resp_put(out, peg__strn(text, (size_t)(at - text)));
    redis_command_ask(command, mark);
}

static void close_step(struct trim *trim)
{
    if (--trim->n_open > 0)
        return;
    if (!trim->is_off && trim->bus->is_ready && trim->least.ms != UINT64_MAX)
        put_trim(trim);
    peg__free(trim);
}

/* `text` of a command is the pointer to its trim. */
static struct trim *trim_of(const struct redis_command *command)
{
    struct trim *trim;

    memcpy(&trim, command->text, sizeof(trim));
    return trim;
}

static struct redis_command *begin_step(struct trim *trim,
                                        void (*fn)(struct redis_request *request,
                                                   const struct resp_value *reply))
{
    struct redis_command *command = redis_command_new(trim->bus, NULL, fn);

    if (!command)
        return NULL;
    if (!redis_command_keep(command, peg__strn((const char *)&trim, sizeof(trim)))) {
        redis_command_give(command);
        return NULL;
    }
    trim->n_open++;
    return command;
}

/* Of a queue that is full fn is not called: what it would count is counted here. */
static void ask_step(struct trim *trim, struct redis_command *command, size_t mark)
{
    struct redis_bus *bus = trim->bus;

    if (redis_queue_add(&bus->queue, mark, &command->request)) {
        trim->is_off = true;
        trim->n_open--;
        redis_command_give(command);
        return;
    }
    net_loop_later(bus->loop, &bus->flush);
}

static void on_pending(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct trim *trim = trim_of(command);
    struct redis_stream_id first;

    if (!reply || !resp_is_list(reply))
        trim->is_off = true;
    else if (redis_stream_id_parse(redis_text_at(reply, 1), &first))
        lower(trim, first);
    close_step(trim);
    redis_command_give(command);
}

static void ask_pending(struct trim *trim, peg_str group)
{
    struct peg__buf *out = &trim->bus->queue.out;
    const size_t mark = redis_queue_mark(&trim->bus->queue);
    struct redis_command *command = begin_step(trim, on_pending);

    if (!command) {
        trim->is_off = true;
        return;
    }
    resp_put_command(out, 3);
    resp_puts(out, "XPENDING");
    resp_put(out, peg__strn(trim->key, trim->key_len));
    resp_put(out, group);
    ask_step(trim, command, mark);
}

static bool has_pending(const struct resp_value *group)
{
    const struct resp_value *at = group + 1;

    for (size_t i = 0; resp_is_list(group) && i + 1 < group->n_items; i += 2) {
        const struct resp_value *value = resp_next(at);

        if (at->kind == RESP_TEXT && peg__str_is(at->text, "pending"))
            return value->kind != RESP_INTEGER || value->integer > 0;
        at = resp_next(value);
    }
    return true;
}

static void look_at_group(struct trim *trim, const struct resp_value *group)
{
    struct redis_stream_id last;

    if (!redis_stream_id_parse(resp_member(group, "last-delivered-id"), &last)) {
        trim->is_off = true;
        return;
    }
    last.sequence++;
    lower(trim, last);
    if (has_pending(group))
        ask_pending(trim, resp_member(group, "name"));
}

static void on_groups(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct trim *trim = trim_of(command);
    const struct resp_value *group;

    if (!reply || reply->kind != RESP_LIST || reply->n_items > MAX_TRIM_GROUPS ||
        trim->bus->is_dead) {
        trim->is_off = true;
    } else {
        group = reply + 1;
        for (size_t i = 0; i < reply->n_items; i++, group = resp_next(group))
            look_at_group(trim, group);
    }
    close_step(trim);
    redis_command_give(command);
}

void bus_stream_trim(struct bus *bus, peg_str key)
{
    struct redis_bus *self = redis_bus_of(bus);
    struct peg__buf *out = &self->queue.out;
    const size_t mark = redis_queue_mark(&self->queue);
    struct trim *trim = (struct trim *)peg__alloc_zero(1, sizeof(*trim) + key.len);
    struct redis_command *command;

    if (!trim)
        return;
    trim->bus = self;
    trim->least = (struct redis_stream_id){UINT64_MAX, UINT64_MAX};
    trim->key_len = key.len;
    memcpy(trim->key, key.ptr, key.len);
    command = begin_step(trim, on_groups);
    if (!command) {
        peg__free(trim);
        return;
    }
    resp_put_command(out, 3);
    resp_puts(out, "XINFO");
    resp_puts(out, "GROUPS");
    resp_put(out, key);
    ask_step(trim, command, mark);
    if (trim->n_open == 0)
        peg__free(trim);
}

/* ---- keys ---------------------------------------------------------------------------------- */

void bus_key_get(struct bus *bus, peg_str key, struct bus_stream_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command = redis_stream_command(self, wait, redis_stream_on_text);

    if (!command)
        return;
    resp_put_command(&self->queue.out, 2);
    resp_puts(&self->queue.out, "GET");
    resp_put(&self->queue.out, key);
    redis_command_ask(command, mark);
}

void bus_key_expire(struct bus *bus, peg_str key, int64_t seconds)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command = redis_command_new(self, NULL, redis_command_on_done);

    if (!command)
        return;
    redis_put_expire(&self->queue.out, key, seconds);
    redis_command_ask(command, mark);
}

static void on_scanned(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct bus_stream_reply *own = redis_stream_reply(command);
    const struct resp_value *list;
    peg_str *texts = NULL;

    if (redis_command_is_failed(command, reply))
        return;
    list = resp_item(reply, 1);
    if (own && list && resp_is_list(list)) {
        own->text = redis_text_at(reply, 0);
        texts = (peg_str *)peg__alloc((list->n_items + 1) * sizeof(*texts));
    }
    if (own && !texts) {
        redis_command_reject(command, PEG_ENOMEM);
        return;
    }
    for (size_t i = 0; texts && i < list->n_items; i++)
        texts[own->n_texts++] = redis_text_at(list, i);
    if (own)
        own->texts = texts;
    redis_command_give(command);
    peg__free(texts);
}

void bus_key_scan(struct bus *bus, peg_str cursor, const char *pattern, int64_t count,
                  struct bus_stream_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    struct peg__buf *out = &self->queue.out;
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command = redis_stream_command(self, wait, on_scanned);

    if (!command)
        return;
    resp_put_command(out, 6);
    resp_puts(out, "SCAN");
    resp_put(out, cursor);
    resp_puts(out, "MATCH");
    resp_puts(out, pattern);
    resp_puts(out, "COUNT");
    resp_put_number(out, count);
    redis_command_ask(command, mark);
}

void bus_hash_scan(struct bus *bus, peg_str key, peg_str cursor, int64_t count,
                   struct bus_stream_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    struct peg__buf *out = &self->queue.out;
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command = redis_stream_command(self, wait, on_scanned);

    if (!command)
        return;
    resp_put_command(out, 5);
    resp_puts(out, "HSCAN");
    resp_put(out, key);
    resp_put(out, cursor);
    resp_puts(out, "COUNT");
    resp_put_number(out, count);
    redis_command_ask(command, mark);
}

void bus_hash_remove(struct bus *bus, peg_str key, peg_str field)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command = redis_command_new(self, NULL, redis_command_on_done);

    if (!command)
        return;
    resp_put_command(&self->queue.out, 3);
    resp_puts(&self->queue.out, "HDEL");
    resp_put(&self->queue.out, key);
    resp_put(&self->queue.out, field);
    redis_command_ask(command, mark);
}
