/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What a loop does with a new connection before anything else:
 *
 *   SCRIPT LOAD...; CONFIG GET; CLIENT TRACKING; SUBSCRIBE; secret; epoch; TIME
 *   the epoch is of another run of the server: a new one, by compare-and-set
 *   leases again, maps                                                         before the rest
 *
 *   peg:<name>:secret   64 hexadecimal digits; the first one that is written holds
 *   peg:<name>:epoch    64 random bits and the run_id of the server under which it holds
 *
 * Both are read, and written if they are not there, by a script: SET NX GET is refused when the
 * server's memory is full, also if the key is there.
 */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "bus/redis/internal.h"

/* ---- replies ------------------------------------------------------------------------------- */

/* An error, here, is of no use to anybody but the log. Frees the command if it is one. */
static bool is_refused(struct redis_command *command, const struct resp_value *reply)
{
    struct redis_bus *bus = command->bus;
    peg_error error;

    if (reply && reply->kind != RESP_ERROR)
        return false;
    if (reply && bus->session) {
        redis_fail_reply(&error, reply);
        redis_session_doom(bus->session, &error);
    }
    redis_command_reject(command, PEG_EIO);
    return true;
}

static void ask_in_handshake(struct redis_command *command, size_t mark)
{
    struct redis_bus *bus = command->bus;
    peg_error error;

    if (!redis_queue_add(&bus->handshake_queue, mark, &command->request))
        return;
    peg__fail_nomem(&error);
    redis_session_doom(bus->session, &error);
    redis_command_reject(command, PEG_ENOMEM);
}

static struct redis_command *new_command(struct redis_bus *bus,
                                         void (*fn)(struct redis_request *request,
                                                    const struct resp_value *reply))
{
    struct redis_command *command = redis_command_new(bus, NULL, fn);
    peg_error error;

    if (!command) {
        peg__fail_nomem(&error);
        redis_session_doom(bus->session, &error);
    }
    return command;
}

/* ---- the end of it ------------------------------------------------------------------------- */

/* Before what waited for the connection: the server may have lost the leases, and others look. */
static void send_first(struct redis_bus *bus)
{
    struct redis_queue waiting = bus->queue;

    bus->queue = bus->handshake_queue;
    redis_retake_leases(bus);
    redis_put_leases(bus);
    redis_maps_load(bus);
    redis_session_send(bus->session, &bus->queue);
    redis_queue_fail(&bus->queue);
    bus->handshake_queue = bus->queue;
    bus->queue = waiting;
}

/* It is logged already if it was noticed while the connection stood. */
static void note_new_epoch(struct redis_bus *bus)
{
    atomic_fetch_add(&bus->hub->n_epochs, 1);
    if (!bus->last_loss || strcmp(bus->last_loss, "E_REDIS_EPOCH") != 0)
        peg__log(PEG_LOG_WARN, "E_REDIS_EPOCH",
                 "loop %u: Redis was restarted, replaced or flushed, and may have lost registers: "
                 "all calls are read again",
                 (unsigned)bus->bus.self.loop);
}

static void end_handshake(struct redis_bus *bus, peg_str epoch_text)
{
    const uint64_t epoch = redis_epoch_number(epoch_text);
    const bool was_ready = bus->was_ready;
    const bool is_reset = was_ready || bus->has_new_secret;

    if (epoch_text.ptr != bus->epoch_text)
        snprintf(bus->epoch_text, sizeof(bus->epoch_text), PEG_FMT, PEG_ARG(epoch_text));
    if (epoch != bus->epoch)
        bus->has_stepped = false; /* the new one says so already */
    if (was_ready && epoch != bus->epoch)
        note_new_epoch(bus);
    bus->epoch = epoch;
    bus->has_asked_epoch = false;
    bus->is_ready = true;
    bus->was_ready = true;
    bus->has_new_secret = false;
    if (bus->last_loss)
        peg__log(PEG_LOG_INFO, "E_REDIS_CONNECT", "loop %u: connected to Redis again",
                 (unsigned)bus->bus.self.loop);
    bus->last_loss = NULL;
    atomic_fetch_add(&bus->hub->n_connects, 1);
    net_loop_disarm(bus->loop, &bus->hold);
    send_first(bus);
    net_loop_later(bus->loop, &bus->flush);
    if (is_reset && bus->bus.events.on_reset)
        bus->bus.events.on_reset(bus->bus.user);
    redis_report_tracked(bus);
}

/* ---- the epoch ----------------------------------------------------------------------------- */

static bool new_epoch_text(struct redis_bus *bus, char ret_text[REDIS_EPOCH_TEXT])
{
    uint64_t bits;

    if (!peg__random(&bits, sizeof(bits)))
        return false;
    snprintf(ret_text, REDIS_EPOCH_TEXT, "%016llx:%s", (unsigned long long)bits,
             redis_session_run_id(bus->session));
    return true;
}

static void fail_randomness(struct redis_bus *bus)
{
    peg_error error;

    peg__fail_no_randomness(&error);
    redis_session_doom(bus->session, &error);
}

static bool is_of_this_run(struct redis_bus *bus, peg_str epoch)
{
    const peg_str run_id = peg__str(redis_session_run_id(bus->session));

    return epoch.len == 16 + 1 + run_id.len && peg__str_eq(peg__str_from(epoch, 17), run_id);
}

static void put_epoch_script(struct redis_bus *bus, struct peg__buf *out, const char *old,
                             const char *text)
{
    resp_put_command(out, 6);
    resp_puts(out, "EVAL");
    resp_puts(out, redis_scripts[REDIS_EPOCH]);
    resp_puts(out, "1");
    redis_put_key(bus, out, "epoch");
    resp_puts(out, old);
    resp_puts(out, text);
}

void redis_put_new_epoch(struct redis_bus *bus)
{
    const size_t mark = redis_queue_mark(&bus->queue);
    struct redis_command *command = redis_command_new(bus, NULL, redis_command_on_done);
    char text[REDIS_EPOCH_TEXT];

    if (!command)
        return;
    if (!new_epoch_text(bus, text)) {
        redis_command_give(command);
        return;
    }
    put_epoch_script(bus, &bus->queue.out, bus->epoch_text, text);
    redis_command_ask(command, mark);
    bus->has_asked_epoch = true;
    bus->n_in_group++; /* it is read, and found to be another one */
}

static void on_epoch_replaced(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;
    peg_error error;

    if (is_refused(command, reply))
        return;
    redis_bus_hold(bus);
    if (reply->kind == RESP_TEXT && is_of_this_run(bus, reply->text)) {
        end_handshake(bus, reply->text);
    } else {
        peg__fail(&error, PEG_EIO, "E_REDIS_EPOCH",
                  "another node of the registry changes the epoch at the same time: again");
        redis_session_doom(bus->session, &error);
    }
    redis_command_give(command);
    redis_bus_release(bus);
}

static void replace_epoch(struct redis_bus *bus)
{
    const size_t mark = redis_queue_mark(&bus->handshake_queue);
    struct redis_command *command = new_command(bus, on_epoch_replaced);
    char text[REDIS_EPOCH_TEXT];

    if (!command)
        return;
    if (!new_epoch_text(bus, text)) {
        fail_randomness(bus);
        redis_command_give(command);
        return;
    }
    put_epoch_script(bus, &bus->handshake_queue.out, bus->epoch_text, text);
    ask_in_handshake(command, mark);
    redis_session_send(bus->session, &bus->handshake_queue);
}

/* The epoch that stands, or else the one that was written now: kept in epoch_text until the end. */
static void on_epoch_set(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    if (is_refused(command, reply))
        return;
    if (reply->kind == RESP_TEXT)
        snprintf(command->bus->epoch_text, REDIS_EPOCH_TEXT, PEG_FMT, PEG_ARG(reply->text));
    redis_command_give(command);
}

/* The last reply of the first pipeline. */
static void on_time(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;

    if (is_refused(command, reply))
        return;
    redis_bus_hold(bus);
    redis_note_time(bus, reply, command->answer.asked_ns);
    if (is_of_this_run(bus, peg__str(bus->epoch_text)))
        end_handshake(bus, peg__str(bus->epoch_text));
    else
        replace_epoch(bus);
    redis_command_give(command);
    redis_bus_release(bus);
}

/* ---- the secret ---------------------------------------------------------------------------- */

void redis_hub_secret(struct bus_redis_hub *hub, uint8_t ret_secret[BUS_REDIS_SECRET_BYTES])
{
    pthread_mutex_lock(&hub->lock);
    memcpy(ret_secret, hub->secret, sizeof(hub->secret));
    pthread_mutex_unlock(&hub->lock);
}

void redis_hub_set_secret(struct bus_redis_hub *hub, const uint8_t secret[BUS_REDIS_SECRET_BYTES])
{
    pthread_mutex_lock(&hub->lock);
    memcpy(hub->secret, secret, sizeof(hub->secret));
    pthread_mutex_unlock(&hub->lock);
}

static void put_agree(struct peg__buf *out, const char *prefix, const char *key, const char *value)
{
    resp_put_command(out, 5);
    resp_puts(out, "EVAL");
    resp_puts(out, redis_scripts[REDIS_AGREE]);
    resp_puts(out, "1");
    resp_begin(out, strlen(prefix) + strlen(key));
    peg__buf_puts(out, prefix);
    peg__buf_puts(out, key);
    resp_end(out);
    resp_puts(out, value);
}

void redis_put_secret(const struct bus_redis_hub *hub, struct peg__buf *out,
                      const uint8_t secret[BUS_REDIS_SECRET_BYTES])
{
    char hex[REDIS_SECRET_HEX];

    peg__hex(secret, BUS_REDIS_SECRET_BYTES, hex);
    put_agree(out, hub->prefix, "secret", hex);
}

void redis_read_secret(const struct bus_redis_hub *hub, peg_str hex,
                       uint8_t secret[BUS_REDIS_SECRET_BYTES])
{
    uint8_t read[BUS_REDIS_SECRET_BYTES];
    bool is_good = hex.len == 2 * sizeof(read);

    for (size_t i = 0; is_good && i < sizeof(read); i++) {
        const int high = peg__hex_value(hex.ptr[2 * i]);
        const int low = peg__hex_value(hex.ptr[2 * i + 1]);

        is_good = high >= 0 && low >= 0;
        read[i] = (uint8_t)((unsigned)high << 4 | (unsigned)low);
    }
    if (is_good)
        memcpy(secret, read, sizeof(read));
    else
        peg__log(PEG_LOG_ERROR, "E_REDIS_REPLY", "the secret at %ssecret is malformed: delete it",
                 hub->prefix);
}

static void note_secret(struct redis_bus *bus, const uint8_t secret[BUS_REDIS_SECRET_BYTES])
{
    if (memcmp(bus->secret, secret, sizeof(bus->secret)) == 0)
        return;
    memcpy(bus->secret, secret, sizeof(bus->secret));
    bus->has_new_secret = true;
}

/* Without one in the reply, the one that was offered holds. */
static void on_secret(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;
    uint8_t secret[BUS_REDIS_SECRET_BYTES];

    if (is_refused(command, reply))
        return;
    memcpy(secret, bus->secret, sizeof(secret));
    if (reply->kind == RESP_TEXT)
        redis_read_secret(bus->hub, reply->text, secret);
    note_secret(bus, secret);
    redis_hub_set_secret(bus->hub, secret);
    redis_command_give(command);
}

/* ---- buffers ------------------------------------------------------------------------------- */

/* "... pubsub <hard> <soft> <seconds>": a subscriber for whom more waits is cut off. */
static bool has_small_buffer(peg_str limits)
{
    static const char name[] = "pubsub ";
    const char *at = (const char *)memmem(limits.ptr, limits.len, name, strlen(name));
    size_t len = 0;
    uint64_t hard;
    peg_str rest;

    if (!at)
        return false;
    rest = peg__str_from(limits, (size_t)(at - limits.ptr) + strlen(name));
    while (len < rest.len && rest.ptr[len] != ' ')
        len++;
    return resp_parse_number(peg__strn(rest.ptr, len), &hard) && hard > 0 &&
           hard < PEG_LIMIT_REDIS_BUFFER_BYTES;
}

static void warn_of_buffers(struct bus_redis_hub *hub, const struct resp_value *reply)
{
    if (has_small_buffer(resp_member(reply, "client-output-buffer-limit")) &&
        !atomic_exchange(&hub->has_warned_of_buffers, true))
        peg__log(PEG_LOG_WARN, "E_REDIS_BUFFER",
                 "Redis cuts off nodes to which some large results are sent at once: set "
                 "client-output-buffer-limit to \"pubsub 32mb 8mb 60\", its default, or more");
}

/* ---- persistence --------------------------------------------------------------------------- */

/* A user who may not ask for settings knows from INFO whether there is a file at all. */
static void warn_of_loss(const struct redis_bus *bus, const struct resp_value *reply)
{
    const peg_str appendonly = resp_member(reply, "appendonly");
    const char *risk = NULL;

    if (appendonly.len)
        risk = redis_persistence_risk(appendonly, resp_member(reply, "appendfsync"));
    else if (bus->session && redis_session_lacks_aof(bus->session))
        risk = redis_persistence_risk(peg__str("no"), peg__str(""));
    if (risk && !atomic_exchange(&bus->hub->has_warned_of_loss, true))
        peg__log(PEG_LOG_WARN, "E_REDIS_PERSISTENCE", "%s", risk);
}

static void on_config(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    if (reply) {
        warn_of_buffers(command->bus->hub, reply);
        warn_of_loss(command->bus, reply);
    }
    redis_command_give(command);
}

static void put_config(struct redis_bus *bus)
{
    struct peg__buf *out = &bus->handshake_queue.out;
    const size_t mark = redis_queue_mark(&bus->handshake_queue);
    struct redis_command *command = new_command(bus, on_config);

    if (!command)
        return;
    resp_put_command(out, 5);
    resp_puts(out, "CONFIG");
    resp_puts(out, "GET");
    resp_puts(out, "client-output-buffer-limit");
    resp_puts(out, "appendonly");
    resp_puts(out, "appendfsync");
    ask_in_handshake(command, mark);
}

/* ---- tracking ------------------------------------------------------------------------------ */

/* Only direct toolsets need it: a user who may not gets an error when one is called. */
static void on_tracking(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    if (reply)
        command->bus->can_track = reply->kind == RESP_TEXT;
    redis_command_give(command);
}

static void put_tracking(struct redis_bus *bus)
{
    struct peg__buf *out = &bus->handshake_queue.out;
    const size_t mark = redis_queue_mark(&bus->handshake_queue);
    struct redis_command *command = new_command(bus, on_tracking);

    if (!command)
        return;
    resp_put_command(out, 4);
    resp_puts(out, "CLIENT");
    resp_puts(out, "TRACKING");
    resp_puts(out, "ON");
    resp_puts(out, "OPTIN");
    ask_in_handshake(command, mark);
}

/* ---- the beginning ------------------------------------------------------------------------- */

/* `lease_ms` of the command: which script. */
static void on_script(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    char *sha = command->bus->shas[command->lease_ms];

    if (is_refused(command, reply))
        return;
    if (reply->kind == RESP_TEXT && reply->text.len == REDIS_SHA_TEXT - 1)
        snprintf(sha, REDIS_SHA_TEXT, PEG_FMT, PEG_ARG(reply->text));
    redis_command_give(command);
}

static void put_scripts(struct redis_bus *bus)
{
    struct peg__buf *out = &bus->handshake_queue.out;

    for (unsigned i = 0; i < REDIS_N_SCRIPTS; i++) {
        const size_t mark = redis_queue_mark(&bus->handshake_queue);
        struct redis_command *command = new_command(bus, on_script);

        if (!command)
            return;
        command->lease_ms = i;
        resp_put_command(out, 3);
        resp_puts(out, "SCRIPT");
        resp_puts(out, "LOAD");
        resp_puts(out, redis_scripts[i]);
        ask_in_handshake(command, mark);
    }
}

/* What SUBSCRIBE replies is pushed: its bytes go with the command behind it. */
static void put_subscriptions(struct redis_bus *bus)
{
    struct peg__buf *out = &bus->handshake_queue.out;
    const size_t mark = redis_queue_mark(&bus->handshake_queue);
    struct redis_command *command = new_command(bus, on_secret);
    uint8_t secret[BUS_REDIS_SECRET_BYTES];

    if (!command)
        return;
    resp_put_command(out, 3 + BUS_N_MAPS);
    resp_puts(out, "SUBSCRIBE");
    redis_put_channel2(bus, out, "loop:", peg__str(bus->self_text));
    redis_put_channel(bus, out, "lost");
    for (unsigned i = 0; i < BUS_N_MAPS; i++)
        redis_put_channel(bus, out, redis_map_channels[i]);
    redis_hub_secret(bus->hub, secret);
    note_secret(bus, secret);
    redis_put_secret(bus->hub, out, secret);
    ask_in_handshake(command, mark);
}

static void put_epoch(struct redis_bus *bus)
{
    struct peg__buf *out = &bus->handshake_queue.out;
    const size_t mark = redis_queue_mark(&bus->handshake_queue);
    struct redis_command *command = new_command(bus, on_epoch_set);

    if (!command)
        return;
    if (!new_epoch_text(bus, bus->epoch_text)) {
        fail_randomness(bus);
        redis_command_give(command);
        return;
    }
    put_agree(out, bus->hub->prefix, "epoch", bus->epoch_text);
    ask_in_handshake(command, mark);
}

static void put_time(struct redis_bus *bus)
{
    const size_t mark = redis_queue_mark(&bus->handshake_queue);
    struct redis_command *command = new_command(bus, on_time);

    if (!command)
        return;
    resp_put_command(&bus->handshake_queue.out, 1);
    resp_puts(&bus->handshake_queue.out, "TIME");
    ask_in_handshake(command, mark);
}

void redis_handshake(struct redis_bus *bus)
{
    put_scripts(bus);
    put_config(bus);
    put_tracking(bus);
    put_subscriptions(bus);
    put_epoch(bus);
    put_time(bus);
    redis_session_send(bus->session, &bus->handshake_queue);
    redis_queue_fail(&bus->handshake_queue); /* the connection is doomed: nothing was taken */
}
