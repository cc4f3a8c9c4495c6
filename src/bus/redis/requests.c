/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Registers and messages. No script: a register is one SET, a message one PUBLISH.
 *
 *   peg:<name>:{<id>}:c|k<n>      SET NX GET PXAT; GET; UNLINK
 *   peg:<name>:{<id>}:t           SET NX PXAT; GETRANGE, EXISTS if that is empty; GET; UNLINK
 *   peg:<name>:{<id>}:w           SADD and PEXPIREAT in one transaction, so that a cut between
 *                                 them leaves no set without an expiry
 *   peg:<name>:body:<random>      SET PX, then the message that names it; GETDEL
 */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/redis/internal.h"

static int64_t at_least_1(int64_t ms)
{
    return ms > 0 ? ms : 1;
}

/* ---- registers ----------------------------------------------------------------------------- */

static bool is_same(peg_str text, const struct peg__blob *value)
{
    return peg__str_eq(text, peg__blob_str(value));
}

/* What was surely not written is given back. `found`: the reply if another was before it. */
static void settle_cost(struct redis_command *command, const struct resp_value *reply,
                        enum resp_kind found)
{
    struct redis_ledger *ledger = command->bus->hub->ledger;

    if (reply && (reply->kind == found || reply->kind == RESP_ERROR))
        redis_ledger_give_back(ledger, &command->cost);
    else
        redis_ledger_keep(ledger, &command->cost, command->keep_until_ms);
    command->cost.is_counted = false;
}

static void give_written(struct redis_command *command)
{
    command->answer.written = true;
    command->current = command->value;
    command->value = NULL;
    redis_command_give_with_epoch(command);
}

/* A put finds the register written, a read reads it. */
static void give_current(struct redis_command *command, peg_str text)
{
    if (command->value && is_same(text, command->value)) {
        give_written(command);
        return;
    }
    command->current = peg__blob_copy(text);
    if (command->current)
        redis_command_give_with_epoch(command);
    else /* a put may have happened: it has to be asked for again */
        redis_command_reject(command, command->value ? PEG_EIO : PEG_ENOMEM);
}

/* A put has found it, and it is gone since. */
static void give_nothing(struct redis_command *command)
{
    if (command->value)
        redis_command_reject(command, PEG_EIO);
    else
        redis_command_give_with_epoch(command);
}

static void on_put(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    settle_cost(command, reply, RESP_TEXT);
    if (redis_command_is_failed(command, reply))
        return;
    if (reply->kind == RESP_NULL)
        give_written(command);
    else if (reply->kind == RESP_TEXT)
        give_current(command, reply->text);
    else
        redis_command_reject(command, PEG_EIO);
}

static void on_read(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    if (redis_command_is_failed(command, reply))
        return;
    if (reply->kind == RESP_TEXT)
        give_current(command, reply->text);
    else
        give_nothing(command);
}

/* ---- results ------------------------------------------------------------------------------- */

static void on_large_result(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;

    redis_bus_hold(bus);
    on_read(request, reply);
    redis_large_end(bus, reply != NULL);
    redis_bus_release(bus);
}

/* One that is there was empty, or was written since. */
static void on_result_exists(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    if (redis_command_is_failed(command, reply))
        return;
    if (reply->kind == RESP_INTEGER && reply->integer == 0) {
        give_nothing(command);
        return;
    }
    command->request.fn = on_large_result;
    redis_large_ask(command);
}

/* Its first bytes: none, also if it is not there. */
static void on_result_head(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;
    const size_t mark = redis_queue_mark(&bus->queue);

    if (redis_command_is_failed(command, reply))
        return;
    if (reply->kind != RESP_TEXT) {
        redis_command_reject(command, PEG_EIO);
    } else if (reply->text.len > PEG_LIMIT_REDIS_INLINE_BYTES) {
        command->request.fn = on_large_result;
        redis_large_ask(command);
    } else if (reply->text.len > 0) {
        give_current(command, reply->text);
    } else {
        command->request.fn = on_result_exists;
        resp_put_command(&bus->queue.out, 2);
        resp_puts(&bus->queue.out, "EXISTS");
        redis_put_register(bus, &bus->queue.out, &command->id, BUS_RESULT, 0);
        redis_command_ask_in_group(command, mark);
    }
}

static void ask_for_result(struct redis_command *command)
{
    struct redis_bus *bus = command->bus;
    struct peg__buf *out = &bus->queue.out;
    const size_t mark = redis_queue_mark(&bus->queue);

    command->request.fn = on_result_head;
    resp_put_command(out, 4);
    resp_puts(out, "GETRANGE");
    redis_put_register(bus, out, &command->id, BUS_RESULT, 0);
    resp_puts(out, "0");
    resp_put_number(out, PEG_LIMIT_REDIS_INLINE_BYTES);
    redis_command_ask_in_group(command, mark);
}

static void on_put_result(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    settle_cost(command, reply, RESP_NULL);
    if (redis_command_is_failed(command, reply))
        return;
    if (reply->kind == RESP_NULL)
        ask_for_result(command);
    else
        give_written(command);
}

/* ---- put, read, forget --------------------------------------------------------------------- */

/* A result that stands may be large: it is not asked for before that is known. */
void redis_put_if_absent(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                         int64_t keep_until_ms, struct bus_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->queue);
    const bool is_result = key->what == BUS_RESULT;
    struct redis_command *command;

    if (key->is_node_local) {
        bus_put_if_absent(self->local, key, value, keep_until_ms, wait);
        return;
    }
    command = redis_command_new(self, wait, is_result ? on_put_result : on_put);
    if (!command)
        return;
    if (redis_ledger_take(self->hub->ledger, key, value->len, &command->cost)) {
        redis_command_reject(command, PEG_ELIMIT);
        return;
    }
    command->id = key->id;
    command->value = peg__blob_ref(value);
    command->keep_until_ms = keep_until_ms;
    resp_put_command(&self->queue.out, is_result ? 6 : 7);
    resp_puts(&self->queue.out, "SET");
    redis_put_register(self, &self->queue.out, &key->id, key->what, key->n);
    resp_put(&self->queue.out, peg__blob_str(value));
    resp_puts(&self->queue.out, "NX");
    if (!is_result)
        resp_puts(&self->queue.out, "GET");
    resp_puts(&self->queue.out, "PXAT");
    resp_put_number(&self->queue.out, at_least_1(keep_until_ms));
    redis_command_ask_in_group(command, mark);
}

void redis_read(struct bus *bus, const struct bus_key *key, struct bus_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command;

    if (key->is_node_local) {
        bus_read(self->local, key, wait);
        return;
    }
    command = redis_command_new(self, wait, on_read);
    if (!command)
        return;
    if (key->what == BUS_RESULT) {
        command->id = key->id;
        ask_for_result(command);
        return;
    }
    resp_put_command(&self->queue.out, 2);
    resp_puts(&self->queue.out, "GET");
    redis_put_register(self, &self->queue.out, &key->id, key->what, key->n);
    redis_command_ask_in_group(command, mark);
}

void redis_send_late(struct redis_bus *bus)
{
    if (bus->late.requests.n > 0 && !redis_queue_move(&bus->queue, &bus->late))
        net_loop_later(bus->loop, &bus->flush);
}

/* An identity may be asked for again at once. A random id is not: its registers go with those of
 * other calls, so that a call alone does not wake the server once more, or have it sync its log. */
void redis_command_ask_late(struct redis_command *command, size_t mark)
{
    struct redis_bus *bus = command->bus;

    if (redis_queue_add(&bus->late, mark, &command->request))
        redis_command_give(command); /* they go when their time is over */
    else if (bus->late.requests.n >= PEG_LIMIT_REDIS_LATE)
        redis_send_late(bus);
    else if (!bus->late_timer.is_armed)
        net_loop_arm(bus->loop, &bus->late_timer,
                     peg__clock_after_ms(net_loop_now_ns(bus->loop), PEG_LIMIT_REDIS_LATE_MS));
}

/* Keys that are not there cost the server as much as those that are. */
void redis_forget(struct bus *bus, const struct bus_key *key, uint32_t n_attempts)
{
    struct redis_bus *self = redis_bus_of(bus);
    const bool is_named = key->id.len == sizeof(key->id.bytes);
    struct redis_queue *queue = is_named ? &self->queue : &self->late;
    const size_t mark = redis_queue_mark(queue);
    struct redis_command *command;

    if (key->is_node_local) {
        bus_forget(self->local, key, n_attempts);
        return;
    }
    command = redis_command_new(self, NULL, redis_command_on_done);
    if (!command)
        return; /* they go when their time is over */
    resp_put_command(&queue->out, 2 + (is_named ? 2 : 0) + (size_t)n_attempts);
    resp_puts(&queue->out, "UNLINK");
    redis_put_register(self, &queue->out, &key->id, BUS_RESULT, 0);
    if (is_named) {
        redis_put_register(self, &queue->out, &key->id, BUS_IDENTITY, 0);
        redis_put_register(self, &queue->out, &key->id, BUS_WAITERS, 0);
    }
    for (uint32_t n = 1; n <= n_attempts; n++)
        redis_put_register(self, &queue->out, &key->id, BUS_CLAIM, n);
    if (is_named)
        redis_command_ask(command, mark);
    else
        redis_command_ask_late(command, mark);
}

/* ---- waiters ------------------------------------------------------------------------------- */

static void on_wait_add(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    if (redis_command_is_failed(command, reply))
        return;
    for (size_t i = 0; resp_is_list(reply) && i < reply->n_items; i++) {
        if (redis_command_is_failed(command, resp_item(reply, i)))
            return;
    }
    command->answer.written = reply->kind == RESP_LIST;
    redis_command_give_with_epoch(command);
}

static void put_expiry(struct redis_bus *bus, const struct bus_id *id, int64_t at_ms,
                       const char *when)
{
    resp_put_command(&bus->queue.out, 4);
    resp_puts(&bus->queue.out, "PEXPIREAT");
    redis_put_register(bus, &bus->queue.out, id, BUS_WAITERS, 0);
    resp_put_number(&bus->queue.out, at_least_1(at_ms));
    resp_puts(&bus->queue.out, when);
}

void redis_wait_add(struct bus *bus, const struct bus_key *key, int64_t keep_until_ms,
                    struct bus_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command;

    if (key->is_node_local) {
        bus_wait_add(self->local, key, keep_until_ms, wait);
        return;
    }
    command = redis_command_new(self, wait, on_wait_add);
    if (!command)
        return;
    command->request.n_skipped = 4;
    resp_put_command(&self->queue.out, 1);
    resp_puts(&self->queue.out, "MULTI");
    resp_put_command(&self->queue.out, 3);
    resp_puts(&self->queue.out, "SADD");
    redis_put_register(self, &self->queue.out, &key->id, BUS_WAITERS, 0);
    resp_puts(&self->queue.out, self->self_text);
    put_expiry(self, &key->id, keep_until_ms, "NX");
    put_expiry(self, &key->id, keep_until_ms, "GT");
    resp_put_command(&self->queue.out, 1);
    resp_puts(&self->queue.out, "EXEC");
    redis_command_ask_in_group(command, mark);
}

static void on_waiters(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    const struct resp_value *item;
    size_t n;

    if (redis_command_is_failed(command, reply))
        return;
    n = reply->kind == RESP_LIST ? reply->n_items : 0;
    if (n > PEG_LIMIT_REDIS_WAITERS)
        n = PEG_LIMIT_REDIS_WAITERS;
    command->addresses = (struct bus_address *)peg__alloc(sizeof(struct bus_address) * (n + 1));
    if (!command->addresses) {
        redis_command_reject(command, PEG_ENOMEM);
        return;
    }
    item = reply + 1;
    for (size_t i = 0; i < n; i++, item = resp_next(item)) {
        if (item->kind == RESP_TEXT &&
            bus_address_parse(item->text, &command->addresses[command->answer.n_addresses]))
            command->answer.n_addresses++;
    }
    redis_command_give_with_epoch(command);
}

void redis_waiters(struct bus *bus, const struct bus_key *key, struct bus_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command;

    if (key->is_node_local) {
        bus_waiters(self->local, key, wait);
        return;
    }
    command = redis_command_new(self, wait, on_waiters);
    if (!command)
        return;
    resp_put_command(&self->queue.out, 2);
    resp_puts(&self->queue.out, "SMEMBERS");
    redis_put_register(self, &self->queue.out, &key->id, BUS_WAITERS, 0);
    redis_command_ask_in_group(command, mark);
}

/* ---- messages ------------------------------------------------------------------------------ */

static void on_published(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    if (redis_command_is_failed(command, reply))
        return;
    command->answer.written = reply->kind == RESP_INTEGER && reply->integer > 0;
    redis_command_give(command);
}

static void put_body(struct redis_bus *bus, const char *key, peg_str body)
{
    resp_put_command(&bus->queue.out, 5);
    resp_puts(&bus->queue.out, "SET");
    redis_put_key2(bus, &bus->queue.out, "body:", peg__str(key));
    resp_put(&bus->queue.out, body);
    resp_puts(&bus->queue.out, "PX");
    resp_put_number(&bus->queue.out, PEG_LIMIT_REDIS_BODY_MS);
}

static void put_message(struct redis_bus *bus, struct bus_address to, const char *head,
                        size_t head_len, peg_str rest)
{
    char address[BUS_ADDRESS_TEXT];

    bus_address_print(to, address);
    resp_put_command(&bus->queue.out, 3);
    resp_puts(&bus->queue.out, "PUBLISH");
    redis_put_channel2(bus, &bus->queue.out, "loop:", peg__str(address));
    resp_begin(&bus->queue.out, head_len + rest.len);
    peg__buf_add(&bus->queue.out, head, head_len);
    peg__buf_str(&bus->queue.out, rest);
    resp_end(&bus->queue.out);
}

void redis_send(struct bus *bus, struct bus_address to, const struct bus_message *message,
                struct bus_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->queue);
    const peg_str body = peg__blob_str(message->body);
    const bool is_by_key = body.len > PEG_LIMIT_REDIS_INLINE_BYTES;
    char head[REDIS_MESSAGE_HEAD];
    char key[PEG_ID_HEX_TEXT] = "";
    struct redis_command *command;

    if (to.node == bus->self.node) {
        bus_send(self->local, to, message, wait);
        return;
    }
    command = redis_command_new(self, wait, on_published);
    if (!command)
        return;
    if (is_by_key) {
        if (!peg__id_hex(key)) {
            redis_command_reject(command, PEG_EIO);
            return;
        }
        put_body(self, key, body);
        command->request.n_skipped = 1;
    }
    put_message(self, to, head, redis_message_pack(message, is_by_key, head),
                is_by_key ? peg__str(key) : body);
    redis_command_ask(command, mark);
}

static void deliver_message(struct redis_bus *bus, struct bus_message *message)
{
    if (!bus->is_dead && bus->bus.events.on_message)
        bus->bus.events.on_message(bus->bus.user, message);
}

/* The body of a message that came without it. `value` is the message. */
static void deliver_body(struct redis_command *command, const struct resp_value *reply)
{
    struct bus_message message;
    bool has_body;
    bool is_by_key;
    peg_str rest;

    if (reply->kind != RESP_TEXT || !redis_message_unpack(peg__blob_str(command->value), &message,
                                                          &has_body, &is_by_key, &rest))
        return;
    message.body = peg__blob_copy(reply->text);
    if (message.body)
        deliver_message(command->bus, &message);
    peg__blob_unref(message.body);
}

static void on_body(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;

    redis_bus_hold(bus);
    if (!redis_command_is_failed(command, reply)) {
        deliver_body(command, reply);
        redis_command_give(command);
    }
    redis_large_end(bus, reply != NULL);
    redis_bus_release(bus);
}

static void add_body(struct redis_bus *bus, peg_str bytes, peg_str key)
{
    struct redis_command *command = redis_command_new(bus, NULL, on_body);

    if (!command)
        return;
    command->value = peg__blob_copy(bytes);
    if (!command->value || !redis_command_keep(command, key)) {
        redis_command_give(command);
        return;
    }
    redis_large_ask(command);
}

/* A message that is malformed, or for which there is no memory, is lost, as any may be. */
void redis_on_message(struct redis_bus *bus, peg_str bytes)
{
    struct bus_message message;
    bool has_body;
    bool is_by_key;
    peg_str rest;

    if (!redis_message_unpack(bytes, &message, &has_body, &is_by_key, &rest))
        return;
    if (is_by_key) {
        if (rest.len == PEG_ID_HEX_TEXT - 1)
            add_body(bus, bytes, rest);
        return;
    }
    if (has_body) {
        message.body = peg__blob_copy(rest);
        if (!message.body)
            return;
    }
    deliver_message(bus, &message);
    peg__blob_unref(message.body);
}
