/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A command from its request to its answer. Answers about registers say under which epoch they
 * hold, which has to be read behind them: the registers of a round form a group, behind which the
 * epoch is read once, and are answered together when it comes.
 */

#include <string.h>

#include "base/error.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/redis/internal.h"

/* ---- the bus ------------------------------------------------------------------------------- */

void redis_bus_hold(struct redis_bus *bus)
{
    bus->n_holds++;
}

void redis_bus_release(struct redis_bus *bus)
{
    if (--bus->n_holds > 0)
        return;
    while (bus->spares) {
        struct redis_command *spare = bus->spares;

        bus->spares = spare->next;
        peg__free(spare);
    }
    peg__free(bus);
}

/* ---- lists --------------------------------------------------------------------------------- */

void redis_commands_append(struct redis_commands *commands, struct redis_command *command)
{
    command->next = NULL;
    if (commands->last)
        commands->last->next = command;
    else
        commands->first = command;
    commands->last = command;
}

struct redis_command *redis_commands_take(struct redis_commands *commands)
{
    struct redis_command *first = commands->first;

    if (!first)
        return NULL;
    commands->first = first->next;
    if (!commands->first)
        commands->last = NULL;
    first->next = NULL;
    return first;
}

void redis_commands_reject(struct redis_commands *commands, peg_status status)
{
    struct redis_commands rejected = *commands;
    struct redis_command *command;

    *commands = (struct redis_commands){0};
    while ((command = redis_commands_take(&rejected)))
        redis_command_reject(command, status);
}

/* ---- one ----------------------------------------------------------------------------------- */

static void answer_at_once(struct redis_bus *bus, struct bus_wait *wait, peg_status status)
{
    const struct bus_answer answer = {
        .status = status, .epoch = bus->epoch, .asked_ns = net_loop_now_ns(bus->loop)};

    if (wait)
        wait->fn(wait, &answer);
}

struct redis_command *redis_command_new(struct redis_bus *bus, struct bus_wait *wait,
                                        void (*fn)(struct redis_request *request,
                                                   const struct resp_value *reply))
{
    struct redis_command *command = bus->spares;

    if (command) {
        bus->spares = command->next;
        bus->n_spares--;
    } else {
        command = (struct redis_command *)peg__alloc(sizeof(*command));
    }
    if (!command) {
        answer_at_once(bus, wait, PEG_ENOMEM);
        return NULL;
    }
    *command = (struct redis_command){
        .request = {.fn = fn},
        .bus = bus,
        .wait = wait,
        .answer = {.epoch = bus->epoch, .asked_ns = net_loop_now_ns(bus->loop)},
    };
    if (wait)
        wait->pending = command;
    return command;
}

bool redis_command_keep(struct redis_command *command, peg_str text)
{
    command->text = (char *)peg__alloc(text.len + 1);
    if (!command->text)
        return false;
    if (text.len)
        memcpy(command->text, text.ptr, text.len);
    command->text[text.len] = '\0';
    command->text_len = text.len;
    return true;
}

static void free_command(struct redis_command *command)
{
    struct redis_bus *bus = command->bus;

    redis_ledger_give_back(bus->hub->ledger, &command->cost); /* of one that was not sent */
    peg__blob_unref(command->current);
    peg__blob_unref(command->value);
    peg__free(command->addresses);
    peg__free(command->text);
    if (bus->n_spares == PEG_LIMIT_REDIS_SPARE_COMMANDS) {
        peg__free(command);
        return;
    }
    command->next = bus->spares;
    bus->spares = command;
    bus->n_spares++;
}

/* The owner may free the bus meanwhile. */
void redis_command_give(struct redis_command *command)
{
    struct redis_bus *bus = command->bus;
    struct bus_wait *wait = command->wait;

    redis_bus_hold(bus);
    command->answer.current = command->current;
    command->answer.addresses = command->addresses;
    if (wait && !bus->is_dead) {
        wait->pending = NULL;
        wait->fn(wait, &command->answer);
    }
    free_command(command);
    redis_bus_release(bus);
}

void redis_command_reject(struct redis_command *command, peg_status status)
{
    command->answer = (struct bus_answer){
        .status = status,
        .epoch = command->bus->epoch,
        .asked_ns = command->answer.asked_ns,
    };
    command->current = peg__blob_unref(command->current);
    peg__free(command->addresses);
    command->addresses = NULL;
    redis_command_give(command);
}

void redis_command_ask(struct redis_command *command, size_t mark)
{
    struct redis_bus *bus = command->bus;
    const peg_status status = redis_queue_add(&bus->queue, mark, &command->request);

    if (status)
        redis_command_reject(command, status);
    else
        net_loop_later(bus->loop, &bus->flush);
}

/* A server whose memory is full has not written anything; of what else it says that is not known.
 */
bool redis_command_is_failed(struct redis_command *command, const struct resp_value *reply)
{
    struct redis_bus *bus = command->bus;
    peg_error error;

    if (reply && reply->kind != RESP_ERROR)
        return false;
    if (reply && !redis_reply_is_fatal(reply)) {
        redis_fail_reply(&error, reply);
        peg__log(PEG_LOG_ERROR, error.code, "%s", error.message);
    }
    if (bus->session)
        redis_session_check_reply(bus->session, reply);
    redis_command_reject(command, reply && resp_is_error(reply, "OOM") ? PEG_ELIMIT : PEG_EIO);
    return true;
}

void redis_command_on_done(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;

    if (!redis_command_is_failed(command, reply))
        redis_command_give(command);
}

/* ---- groups -------------------------------------------------------------------------------- */

uint64_t redis_epoch_number(peg_str text)
{
    static const struct peg__hash_key key = {UINT64_C(0x706567626f617264), UINT64_C(0x65706f6368)};
    const uint64_t number = text.len ? peg__hash(key, text) : 0;

    return number || !text.len ? number : 1;
}

/* Another epoch: what is known of the server is of no use, and a new connection finds out. */
static void note_epoch(struct redis_bus *bus, uint64_t epoch)
{
    peg_error error;

    if (epoch == bus->epoch || !bus->session)
        return;
    peg__fail(&error, PEG_EIO, "E_REDIS_EPOCH",
              "the registers of Redis were lost, or may have been: all calls are read again");
    redis_session_doom(bus->session, &error);
}

static void on_epoch(struct redis_request *request, const struct resp_value *reply)
{
    struct redis_command *command = (struct redis_command *)request;
    struct redis_bus *bus = command->bus;
    const bool is_known = reply && (reply->kind == RESP_TEXT || reply->kind == RESP_NULL);
    const uint64_t epoch =
        redis_epoch_number(is_known && reply->kind == RESP_TEXT ? reply->text : peg__str(""));
    struct redis_commands group = bus->group;
    struct redis_command *answered;

    redis_bus_hold(bus);
    if (is_known)
        redis_count_round_trip(bus->hub, net_loop_now_ns(bus->loop) - command->answer.asked_ns);
    bus->group = (struct redis_commands){0};
    while ((answered = redis_commands_take(&group))) {
        answered->answer.epoch = bus->has_stepped ? epoch + 1 : epoch; /* any but that one */
        if (is_known)
            redis_command_give(answered);
        else
            redis_command_reject(answered, PEG_EIO);
    }
    if (is_known && !bus->is_dead)
        note_epoch(bus, epoch);
    if (is_known || !redis_command_is_failed(command, reply))
        redis_command_give(command);
    redis_bus_release(bus);
}

/* Registers expire by the server's time: if that has stepped, what is absent may have been there.
 * So the time is asked for behind them, too, and a step counts as another epoch. */
void redis_put_epoch(struct redis_bus *bus)
{
    struct redis_command *command;
    size_t mark;

    if (bus->n_in_group == 0)
        return;
    command = redis_command_new(bus, NULL, on_epoch);
    if (!command)
        return; /* tried again: the group waits, and its time is the server's to pass */
    bus->n_in_group = 0;
    redis_put_time(bus);
    mark = redis_queue_mark(&bus->queue);
    resp_put_command(&bus->queue.out, 2);
    resp_puts(&bus->queue.out, "GET");
    redis_put_key(bus, &bus->queue.out, "epoch");
    if (redis_queue_add(&bus->queue, mark, &command->request)) {
        bus->n_in_group = 1;
        redis_command_give(command);
    }
}

void redis_command_ask_in_group(struct redis_command *command, size_t mark)
{
    struct redis_bus *bus = command->bus;

    bus->n_in_group++;
    redis_command_ask(command, mark);
    if (bus->n_in_group >= PEG_LIMIT_REDIS_GROUP)
        redis_put_epoch(bus);
}

void redis_command_give_with_epoch(struct redis_command *command)
{
    redis_commands_append(&command->bus->group, command);
}

/* ---- arguments ----------------------------------------------------------------------------- */

static void put_name(struct peg__buf *out, const char *prefix, const char *rest, peg_str more)
{
    const peg_str begin = peg__str(prefix);
    const peg_str text = peg__str(rest);

    resp_begin(out, begin.len + text.len + more.len);
    peg__buf_str(out, begin);
    peg__buf_str(out, text);
    peg__buf_str(out, more);
    resp_end(out);
}

void redis_put_key2(struct redis_bus *bus, struct peg__buf *out, const char *rest, peg_str more)
{
    put_name(out, bus->hub->prefix, rest, more);
}

void redis_put_key(struct redis_bus *bus, struct peg__buf *out, const char *rest)
{
    redis_put_key2(bus, out, rest, peg__str(""));
}

void redis_put_channel2(struct redis_bus *bus, struct peg__buf *out, const char *rest, peg_str more)
{
    put_name(out, bus->hub->channels, rest, more);
}

void redis_put_channel(struct redis_bus *bus, struct peg__buf *out, const char *rest)
{
    redis_put_channel2(bus, out, rest, peg__str(""));
}

enum { REGISTER_TEXT = 96 };

void redis_put_register(struct redis_bus *bus, struct peg__buf *out, const struct bus_id *id,
                        char what, uint32_t n)
{
    char text[REGISTER_TEXT];
    char *at = text;

    *at++ = '{';
    bus_id_print(id, at);
    at += 2 * (size_t)id->len;
    *at++ = '}';
    *at++ = ':';
    *at++ = what;
    if (what == BUS_CLAIM || what == BUS_QUESTION || what == BUS_REPLY)
        at = peg__put_decimal(at, n);
    *at = '\0';
    redis_put_key(bus, out, text);
}

/* The name of a script is known when a connection was there once. */
void redis_put_script(struct redis_bus *bus, enum redis_script script, size_t n_keys, size_t n_args)
{
    const bool has_name = bus->shas[script][0] != '\0';

    resp_put_command(&bus->queue.out, 3 + n_keys + n_args);
    resp_puts(&bus->queue.out, has_name ? "EVALSHA" : "EVAL");
    resp_puts(&bus->queue.out, has_name ? bus->shas[script] : redis_scripts[script]);
    resp_put_number(&bus->queue.out, (int64_t)n_keys);
}
