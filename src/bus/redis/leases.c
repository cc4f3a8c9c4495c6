/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leases, lost loops and time.
 *
 *   peg:<name>:lease:<lease>    the address of the loop that has it, PX
 *   peg:<name>:loops            sorted set: loops that have a lease of their own address, by the
 *                               end of that; a day after the last one it is gone
 *   peg:<name>:lost             channel: addresses whose lease ended without a release
 *
 * The leases of a round are asked for by one script. When that of the loop's own address is among
 * them, the same round asks what has to be known again at each renewal: the time, the state of the
 * server, and the revisions of the maps.
 */

#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/redis/internal.h"

enum { STEP_PART = 10, MIN_STEP_MS = 50 };

/* ---- names that this loop has -------------------------------------------------------------- */

struct name {
    int64_t until_ns;
};

/* Without memory the name is not asked for again after a loss; its owner renews it all the same. */
static void keep_name(struct redis_bus *bus, peg_str text, int64_t until_ns)
{
    struct name *name = (struct name *)peg__map_get(&bus->names, text);

    if (!name) {
        name = (struct name *)peg__alloc_zero(1, sizeof(*name));
        if (!name || peg__map_add(&bus->names, text, name)) {
            peg__free(name);
            return;
        }
    }
    name->until_ns = until_ns;
}

static void drop_name(struct redis_bus *bus, peg_str text)
{
    void *name = NULL;

    if (peg__map_remove(&bus->names, text, &name))
        peg__free(name);
}

static void drop_ended_names(struct redis_bus *bus, int64_t now_ns)
{
    PEG__MAP_EACH(&bus->names, entry)
    {
        if (((struct name *)entry->value)->until_ns <= now_ns)
            drop_name(bus, entry->name);
    }
}

void redis_free_names(struct redis_bus *bus)
{
    drop_ended_names(bus, NET_NEVER);
    peg__map_free(&bus->names);
}

/* ---- time ---------------------------------------------------------------------------------- */

/* The reply came from between the request and now, which bounds the offset. */
static bool read_time(const struct resp_value *reply, int64_t *ret_ns)
{
    const struct resp_value *s = resp_item(reply, 0);
    const struct resp_value *us = resp_item(reply, 1);
    uint64_t seconds;
    uint64_t micros;

    if (!s || !us || s->kind != RESP_TEXT || us->kind != RESP_TEXT ||
        !resp_parse_number(s->text, &seconds) || !resp_parse_number(us->text, &micros) ||
        seconds > INT64_MAX / PEG_NS_PER_S - 1 || micros >= 1000000)
        return false;
    *ret_ns = (int64_t)seconds * PEG_NS_PER_S + (int64_t)micros * 1000;
    return true;
}

static bool has_stepped(const struct redis_bus *bus, const struct redis_offset *offset)
{
    const int64_t part_ns = bus->lease_ns / STEP_PART;
    const int64_t max_ns =
        part_ns > MIN_STEP_MS * PEG_NS_PER_MS ? part_ns : MIN_STEP_MS * PEG_NS_PER_MS;

    return bus->offset.is_known && (offset->min_ns - bus->offset.max_ns > max_ns ||
                                    bus->offset.min_ns - offset->max_ns > max_ns);
}

void redis_note_time(struct redis_bus *bus, const struct resp_value *reply, int64_t asked_ns)
{
    struct redis_offset offset = {.is_known = true};
    int64_t time_ns;

    if (!read_time(reply, &time_ns))
        return;
    offset.min_ns = time_ns - net_loop_now_ns(bus->loop);
    offset.max_ns = time_ns - asked_ns;
    bus->has_stepped |= has_stepped(bus, &offset);
    bus->offset = offset;
    bus->offset_ns = offset.min_ns + (offset.max_ns - offset.min_ns) / 2;
}

static void on_time(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    if (redis_command_is_failed(command, reply))
        return;
    redis_note_time(command->bus, reply, command->answer.asked_ns);
    redis_command_give(command);
}

void redis_put_time(struct redis_bus *bus)
{
    const size_t mark = redis_queue_mark(&bus->queue);
    struct redis_command *command = redis_command_new(bus, NULL, on_time);

    if (!command)
        return;
    resp_put_command(&bus->queue.out, 1);
    resp_puts(&bus->queue.out, "TIME");
    redis_command_ask(command, mark);
}

/* ---- the state of the server --------------------------------------------------------------- */

static void on_info(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;
    char run_id[REDIS_RUN_ID_TEXT];
    peg_error error;

    if (redis_command_is_failed(command, reply))
        return;
    if (reply->kind != RESP_TEXT || redis_check_info(reply->text, run_id, &error)) {
        if (reply->kind != RESP_TEXT)
            redis_fail_reply(&error, reply);
        redis_session_doom(bus->session, &error);
    }
    redis_command_give(command);
}

static void put_info(struct redis_bus *bus)
{
    static const char *const words[] = {"INFO", "server", "memory", "persistence", "replication"};
    const size_t mark = redis_queue_mark(&bus->queue);
    struct redis_command *command = redis_command_new(bus, NULL, on_info);

    if (!command)
        return;
    resp_put_command(&bus->queue.out, 5);
    for (size_t i = 0; i < 5; i++)
        resp_puts(&bus->queue.out, words[i]);
    redis_command_ask(command, mark);
}

/* ---- asking for leases --------------------------------------------------------------------- */

static bool is_own_name(const struct redis_bus *bus, const struct redis_command *command)
{
    return peg__str_is(peg__strn(command->text, command->text_len), bus->self_text);
}

static void note_lease(struct redis_bus *bus, const struct redis_command *command, bool is_mine)
{
    const peg_str name = {command->text, command->text_len};
    const int64_t asked_ns = command->answer.asked_ns;

    if (!is_mine) {
        drop_name(bus, name);
        return;
    }
    keep_name(bus, name, peg__clock_after_ms(asked_ns, command->lease_ms));
    if (is_own_name(bus, command)) {
        redis_count_fenced(bus);
        bus->renewed_ns = asked_ns;
        bus->lease_ns = command->lease_ms * PEG_NS_PER_MS;
        drop_ended_names(bus, net_loop_now_ns(bus->loop));
    }
}

static void answer_lease(struct redis_bus *bus, struct redis_command *command,
                         const struct resp_value *holder)
{
    command->addresses = (struct bus_address *)peg__alloc_zero(1, sizeof(struct bus_address));
    if (!command->addresses) {
        redis_command_reject(command, PEG_EIO);
        return;
    }
    if (holder->kind == RESP_TEXT && holder->text.len)
        (void)bus_address_parse(holder->text, command->addresses);
    command->answer.n_addresses = 1;
    command->answer.written = bus_address_equal(command->addresses[0], bus->bus.self);
    note_lease(bus, command, command->answer.written);
    redis_command_give(command);
}

/* The reply to a script: one address for each lease of the batch. */
static void on_leases_asked(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *asked = (struct redis_command *)request;
    struct redis_bus *bus = asked->bus;
    struct redis_commands batch = {.first = asked->batch};
    struct redis_command *command;
    const bool is_list = reply && reply->kind == RESP_LIST;

    redis_bus_hold(bus);
    for (size_t i = 0; (command = redis_commands_take(&batch)); i++) {
        const struct resp_value *holder = is_list ? resp_item(reply, i) : NULL;

        if (holder && !bus->is_dead)
            answer_lease(bus, command, holder);
        else
            redis_command_reject(command,
                                 reply && resp_is_error(reply, "OOM") ? PEG_ELIMIT : PEG_EIO);
    }
    asked->batch = NULL;
    redis_command_on_done(request, reply);
    redis_bus_release(bus);
}

static const char *mode_text(const struct redis_bus *bus, const struct redis_command *command)
{
    static const char *const modes[][2] = {
        [BUS_LEASE_TAKE] = {"T", "To"},
        [BUS_LEASE_RENEW] = {"R", "Ro"},
        [BUS_LEASE_IF_FREE] = {"F", "Fo"},
    };

    return modes[command->mode][is_own_name(bus, command)];
}

static void put_batch(struct redis_bus *bus, struct redis_command *batch, size_t n)
{
    const size_t mark = redis_queue_mark(&bus->queue);
    struct redis_command *asked = redis_command_new(bus, NULL, on_leases_asked);
    struct peg__buf *out = &bus->queue.out;
    peg_status status = PEG_ENOMEM;

    if (asked) {
        asked->batch = batch;
        redis_put_script(bus, REDIS_LEASE, n + 1, 1 + 2 * n);
        redis_put_key(bus, out, "loops");
        for (const struct redis_command *at = batch; at; at = at->next)
            redis_put_key2(bus, out, "lease:", peg__strn(at->text, at->text_len));
        resp_puts(out, bus->self_text);
        for (const struct redis_command *at = batch; at; at = at->next) {
            resp_puts(out, mode_text(bus, at));
            resp_put_number(out, at->lease_ms);
        }
        status = redis_queue_add(&bus->queue, mark, &asked->request);
    }
    if (status) {
        struct redis_commands rejected = {.first = batch};

        if (asked)
            redis_command_give(asked);
        redis_commands_reject(&rejected, status);
    }
}

/* Cuts off the first ones, and reports whether the own address is among them. */
static struct redis_command *take_batch(struct redis_bus *bus, size_t *ret_n, bool *has_own)
{
    struct redis_commands batch = {0};
    size_t n = 0;

    while (n < PEG_LIMIT_REDIS_LEASES && bus->leases.first) {
        struct redis_command *command = redis_commands_take(&bus->leases);

        *has_own |= is_own_name(bus, command);
        redis_commands_append(&batch, command);
        n++;
    }
    *ret_n = n;
    return batch.first;
}

void redis_put_leases(struct redis_bus *bus)
{
    bool has_own = false;

    redis_bus_hold(bus);
    while (bus->leases.first && !bus->is_dead) {
        size_t n;
        struct redis_command *batch = take_batch(bus, &n, &has_own);

        bus->n_leases -= n;
        put_batch(bus, batch, n);
    }
    if (has_own && !bus->is_dead) {
        put_info(bus);
        redis_maps_compare(bus);
        bus->n_in_group++; /* time and epoch too */
    }
    redis_bus_release(bus);
}

static int64_t clamp_lease_ms(int64_t ms)
{
    const int64_t max_ms = (int64_t)PEG_LIMIT_REDIS_LEASE_DAYS * 24 * 60 * 60 * 1000;

    if (ms > max_ms)
        return max_ms;
    return ms > 0 ? ms : 1;
}

void redis_lease(struct bus *bus, peg_str name, int64_t lease_ms, enum bus_lease_mode mode,
                 struct bus_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    struct redis_command *command = redis_command_new(self, wait, NULL);

    if (!command)
        return;
    if (self->n_leases >= PEG_LIMIT_BUS_LEASES || !redis_command_keep(command, name)) {
        redis_command_reject(command,
                             self->n_leases >= PEG_LIMIT_BUS_LEASES ? PEG_ELIMIT : PEG_ENOMEM);
        return;
    }
    command->lease_ms = clamp_lease_ms(lease_ms);
    command->mode = mode;
    redis_commands_append(&self->leases, command);
    self->n_leases++;
    net_loop_later(self->loop, &self->flush);
}

/* For the time that is left; only what no other loop has taken meanwhile. */
void redis_retake_leases(struct redis_bus *bus)
{
    const int64_t now_ns = net_loop_now_ns(bus->loop);

    drop_ended_names(bus, now_ns);
    PEG__MAP_EACH(&bus->names, entry)
    {
        const struct name *name = (const struct name *)entry->value;
        const int64_t left_ms = (name->until_ns - now_ns) / PEG_NS_PER_MS;

        redis_lease(&bus->bus, entry->name, left_ms, BUS_LEASE_IF_FREE, NULL);
    }
}

/* ---- giving back --------------------------------------------------------------------------- */

static void put_release(struct redis_bus *bus, peg_str name, bool reports_loss)
{
    const size_t mark = redis_queue_mark(&bus->queue);
    struct redis_command *command = redis_command_new(bus, NULL, redis_command_on_done);
    struct peg__buf *out = &bus->queue.out;

    if (!command)
        return; /* it runs out */
    redis_put_script(bus, REDIS_RELEASE, 2, 3);
    redis_put_key(bus, out, "loops");
    redis_put_key2(bus, out, "lease:", name);
    resp_puts(out, bus->self_text);
    if (reports_loss)
        redis_put_channel(bus, out, "lost");
    else
        resp_puts(out, "");
    resp_puts(out, peg__str_is(name, bus->self_text) ? "o" : "-");
    redis_command_ask(command, mark);
}

void redis_release(struct bus *bus, peg_str name)
{
    struct redis_bus *self = redis_bus_of(bus);

    redis_put_leases(self); /* what was asked for before comes before */
    drop_name(self, name);
    if (peg__str_is(name, self->self_text))
        self->lease_ns = 0;
    put_release(self, name, false);
}

void redis_put_end(struct redis_bus *bus)
{
    if (peg__map_find(&bus->names, peg__str(bus->self_text)))
        put_release(bus, peg__str(bus->self_text), true);
}

/* ---- finding ------------------------------------------------------------------------------- */

static void on_found(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    const struct resp_value *item;

    if (redis_command_is_failed(command, reply))
        return;
    if (reply->kind != RESP_LIST || reply->n_items != command->answer.n_addresses) {
        redis_command_reject(command, PEG_EIO);
        return;
    }
    item = reply + 1;
    for (size_t i = 0; i < command->answer.n_addresses; i++, item = resp_next(item)) {
        if (item->kind == RESP_TEXT)
            (void)bus_address_parse(item->text, &command->addresses[i]);
    }
    redis_command_give_with_epoch(command);
}

void redis_leases(struct bus *bus, const peg_str *names, size_t n, struct bus_wait *wait)
{
    struct redis_bus *self = redis_bus_of(bus);
    struct redis_command *command = redis_command_new(self, wait, on_found);
    size_t mark;

    if (!command)
        return;
    command->addresses =
        (struct bus_address *)peg__alloc_zero(n ? n : 1, sizeof(struct bus_address));
    if (!command->addresses || n == 0) {
        if (command->addresses)
            redis_command_give(command);
        else
            redis_command_reject(command, PEG_ENOMEM);
        return;
    }
    command->answer.n_addresses = n;
    redis_put_leases(self); /* what was asked for before comes before */
    mark = redis_queue_mark(&self->queue);
    resp_put_command(&self->queue.out, n + 1);
    resp_puts(&self->queue.out, "MGET");
    for (size_t i = 0; i < n; i++)
        redis_put_key2(self, &self->queue.out, "lease:", names[i]);
    redis_command_ask_in_group(command, mark);
}

/* ---- lost loops ---------------------------------------------------------------------------- */

void redis_put_reap(struct redis_bus *bus)
{
    const size_t mark = redis_queue_mark(&bus->queue);
    struct redis_command *command = redis_command_new(bus, NULL, redis_command_on_done);

    if (!command)
        return;
    redis_put_script(bus, REDIS_REAP, 1, 2);
    redis_put_key(bus, &bus->queue.out, "loops");
    redis_put_key(bus, &bus->queue.out, "lease:");
    redis_put_channel(bus, &bus->queue.out, "lost");
    redis_command_ask(command, mark);
}

void redis_on_lost_loop(struct redis_bus *bus, peg_str text)
{
    struct bus_address address;

    if (bus_address_parse(text, &address) && !bus_address_equal(address, bus->bus.self) &&
        bus->bus.events.on_node_lost)
        bus->bus.events.on_node_lost(bus->bus.user, address);
}

/* R3: counted from when the last renewal that succeeded was asked for. */
bool redis_is_fenced(struct bus *bus)
{
    const struct redis_bus *self = redis_bus_of(bus);

    return net_loop_now_ns(self->loop) >= redis_fence_ns(self);
}
