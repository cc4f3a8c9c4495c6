/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What may be large is fetched a few at a time: all that a subscriber is sent at once must fit the
 * server's buffer for it, or the server cuts it off.
 *
 *   a body of a message   GETDEL peg:<name>:body:<text>
 *   a result              GET peg:<name>:{<id>}:t, and the epoch behind it
 */

#include "base/limits.h"
#include "base/text/str.h"
#include "bus/redis/internal.h"

static void put_large(struct redis_bus *bus, const struct redis_command *command)
{
    struct peg__buf *out = &bus->queue.out;

    resp_put_command(out, 2);
    if (command->text) {
        resp_puts(out, "GETDEL");
        redis_put_key2(bus, out, "body:", peg__strn(command->text, command->text_len));
    } else {
        resp_puts(out, "GET");
        redis_put_register(bus, out, &command->id, BUS_RESULT, 0);
        bus->n_in_group++;
    }
}

static void fetch(struct redis_bus *bus)
{
    while (bus->n_large < PEG_LIMIT_REDIS_LARGE && bus->large.first) {
        const size_t mark = redis_queue_mark(&bus->queue);
        struct redis_command *command = redis_commands_take(&bus->large);
        peg_status status;

        put_large(bus, command);
        status = redis_queue_add(&bus->queue, mark, &command->request);
        if (status) {
            redis_command_reject(command, status); /* a message is lost */
            continue;
        }
        bus->n_large++;
        net_loop_later(bus->loop, &bus->flush);
    }
}

void redis_large_ask(struct redis_command *command)
{
    struct redis_bus *bus = command->bus;

    redis_commands_append(&bus->large, command);
    fetch(bus);
}

void redis_large_end(struct redis_bus *bus, bool is_connected)
{
    bus->n_large--;
    if (is_connected && !bus->is_dead)
        fetch(bus);
}

void redis_large_drop(struct redis_bus *bus)
{
    redis_commands_reject(&bus->large, PEG_EIO);
}
