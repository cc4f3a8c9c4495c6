/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Registers and messages. No script: a register is one SET, a message one PUBLISH.
 *
 *   peg:<name>:{<id>}:c|k<n>|t    SET NX GET PXAT; GET; UNLINK
 *   peg:<name>:{<id>}:w           SADD and PEXPIREAT in one transaction, so that a cut between
 *                                 them leaves no set without an expiry
 *   peg:<name>:body:<random>      SET PX, then the message that names it; GETDEL
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/redis/internal.h"

/* ---- names of registers -------------------------------------------------------------------- */

enum { REGISTER_TEXT = 96 };

/* "{id}:c", "{id}:k7". */
static void put_register_key(struct redis_bus *bus, const struct bus_id *id, char what, uint32_t n)
{
    char text[REGISTER_TEXT];
    char *at = text;

    *at++ = '{';
    bus_id_print(id, at);
    at += 2 * (size_t)id->len;
    *at++ = '}';
    *at++ = ':';
    *at++ = what;
    if (what == BUS_CLAIM)
        at = peg__put_decimal(at, n);
    *at = '\0';
    redis_put_key(bus, &bus->queue.out, text);
}

static int64_t at_least_1(int64_t ms)
{
    return ms > 0 ? ms : 1;
}

/* ---- registers ----------------------------------------------------------------------------- */

static bool is_same(peg_str text, const struct peg__blob *value)
{
    return peg__str_eq(text, peg__blob_str(value));
}

/* Only what was surely not written is given back. */
static void settle_cost(struct redis_command *command, const struct resp_value *reply)
{
    struct redis_ledger *ledger = command->bus->hub->ledger;

    if (reply && (reply->kind == RESP_TEXT || reply->kind == RESP_ERROR))
        redis_ledger_give_back(ledger, &command->cost);
    else
        redis_ledger_keep(ledger, &command->cost, command->keep_until_ms);
    command->cost.is_counted = false;
}

static void on_put(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    settle_cost(command, reply);
    if (redis_command_is_failed(command, reply))
        return;
    command->answer.written = reply->kind == RESP_NULL ||
                              (reply->kind == RESP_TEXT && is_same(reply->text, command->value));
    if (command->answer.written) {
        command->current = command->value;
        command->value = NULL;
    } else {
        command->current = reply->kind == RESP_TEXT ? peg__blob_copy(reply->text) : NULL;
        if (!command->current) { /* its value is not known: it has to be asked for again */
            redis_command_reject(command, PEG_EIO);
            return;
        }
    }
    redis_command_give_with_epoch(command);
}

void redis_put_if_absent(struct bus *bus, const struct bus_key *key, struct peg__blob *value,
                         int64_t keep_until_ms, struct bus_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command;

    if (key->is_node_local) {
        bus_put_if_absent(self->local, key, value, keep_until_ms, wait);
        return;
    }
    command = redis_command_new(self, wait, on_put);
    if (!command)
        return;
    if (redis_ledger_take(self->hub->ledger, key, value->len, &command->cost)) {
        redis_command_reject(command, PEG_ELIMIT);
        return;
    }
    command->value = peg__blob_ref(value);
    command->keep_until_ms = keep_until_ms;
    resp_put_command(&self->queue.out, 7);
    resp_puts(&self->queue.out, "SET");
    put_register_key(self, &key->id, key->what, key->n);
    resp_put(&self->queue.out, peg__blob_str(value));
    resp_puts(&self->queue.out, "NX");
    resp_puts(&self->queue.out, "GET");
    resp_puts(&self->queue.out, "PXAT");
    resp_put_number(&self->queue.out, at_least_1(keep_until_ms));
    redis_command_ask_in_group(command, mark);
}

static void on_read(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    if (redis_command_is_failed(command, reply))
        return;
    if (reply->kind == RESP_TEXT) {
        command->current = peg__blob_copy(reply->text);
        if (!command->current) {
            redis_command_reject(command, PEG_ENOMEM);
            return;
        }
    }
    redis_command_give_with_epoch(command);
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
    resp_put_command(&self->queue.out, 2);
    resp_puts(&self->queue.out, "GET");
    put_register_key(self, &key->id, key->what, key->n);
    redis_command_ask_in_group(command, mark);
}

void redis_forget(struct bus *bus, const struct bus_key *key, uint32_t n_attempts)
{
    struct redis_bus *self = redis_bus_of(bus);
    const size_t mark = redis_queue_mark(&self->queue);
    struct redis_command *command;

    if (key->is_node_local) {
        bus_forget(self->local, key, n_attempts);
        return;
    }
    command = redis_command_new(self, NULL, redis_command_on_done);
    if (!command)
        return; /* they go when their time is over */
    resp_put_command(&self->queue.out, 4 + (size_t)n_attempts);
    resp_puts(&self->queue.out, "UNLINK");
    put_register_key(self, &key->id, BUS_IDENTITY, 0);
    put_register_key(self, &key->id, BUS_RESULT, 0);
    put_register_key(self, &key->id, BUS_WAITERS, 0);
    for (uint32_t n = 1; n <= n_attempts; n++)
        put_register_key(self, &key->id, BUS_CLAIM, n);
    redis_command_ask(command, mark);
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
    put_register_key(bus, id, BUS_WAITERS, 0);
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
    put_register_key(self, &key->id, BUS_WAITERS, 0);
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
    put_register_key(self, &key->id, BUS_WAITERS, 0);
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
    redis_put_key2(bus, &bus->queue.out, "loop:", peg__str(address));
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

static void fetch_bodies(struct redis_bus *bus);

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
    bus->n_bodies--;
    if (!redis_command_is_failed(command, reply)) {
        deliver_body(command, reply);
        redis_command_give(command);
    }
    if (reply && !bus->is_dead)
        fetch_bodies(bus);
    redis_bus_release(bus);
}

/* A few at a time: all that a subscriber is sent at once must fit the server's buffer for it. */
static void fetch_bodies(struct redis_bus *bus)
{
    while (bus->n_bodies < PEG_LIMIT_REDIS_BODIES && bus->bodies.first) {
        const size_t mark = redis_queue_mark(&bus->queue);
        struct redis_command *command = redis_commands_take(&bus->bodies);

        resp_put_command(&bus->queue.out, 2);
        resp_puts(&bus->queue.out, "GETDEL");
        redis_put_key2(bus, &bus->queue.out, "body:", peg__strn(command->text, command->text_len));
        if (redis_queue_add(&bus->queue, mark, &command->request)) {
            redis_command_give(command); /* the message is lost */
            continue;
        }
        bus->n_bodies++;
        net_loop_later(bus->loop, &bus->flush);
    }
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
    redis_commands_append(&bus->bodies, command);
    fetch_bodies(bus);
}

void redis_drop_bodies(struct redis_bus *bus)
{
    redis_commands_reject(&bus->bodies, PEG_EIO);
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
