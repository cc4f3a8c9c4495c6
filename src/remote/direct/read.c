/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Entries of the request stream. What there is no room for stays there, for a reader that has some;
 * but pings come the same way, so now and then it is read up to the next one all the same, and
 * calls that stand before that are given up.
 */

#include "remote/direct/direct.h"

#include <stdio.h>

#include "base/error.h"
#include "base/mem.h"

size_t remote__direct_room(const struct remote__direct *direct)
{
    const peg_provider *prov = direct->prov;
    const size_t most = (size_t)prov->config.concurrency + prov->config.max_queued;

    if (prov->phase != REMOTE__PROV_SERVING || prov->calls.n >= most)
        return 0;
    return most - prov->calls.n;
}

/* ---- calls --------------------------------------------------------------------------------- */

/* Strings of the entry are followed by a NUL. */
static char *entry_text_of(peg_str text)
{
    return peg__unconst(text.len ? text.ptr : "");
}

/* v0.31.0 has null for no arguments. */
static void fill_payload(peg_str payload, Pegboard__V1__Call *frame)
{
    if (peg__str_is(payload, "null"))
        return;
    frame->payload.data = peg__unconst(payload.ptr);
    frame->payload.len = payload.len;
}

static void fill_frame(const struct pulse_call *from, peg_str id, unsigned attempt,
                       Pegboard__V1__Call *frame, Pegboard__V1__CallMeta *meta)
{
    pegboard__v1__call__init(frame);
    pegboard__v1__call_meta__init(meta);
    frame->call_id = entry_text_of(from->tool_use_id);
    frame->attempt = attempt;
    frame->tool = entry_text_of(from->tool);
    fill_payload(from->payload, frame);
    frame->traceparent = entry_text_of(from->traceparent);
    frame->tracestate = entry_text_of(from->tracestate);
    frame->baggage = entry_text_of(from->baggage);
    frame->deadline_unix_ms = from->deadline_unix_ms;
    frame->route.data = peg__unconst(id.ptr);
    frame->route.len = id.len;
    meta->run_id = entry_text_of(from->run_id);
    meta->session_id = entry_text_of(from->session_id);
    meta->turn_id = entry_text_of(from->turn_id);
    meta->tool_call_id = entry_text_of(from->tool_call_id);
    meta->parent_tool_call_id = entry_text_of(from->parent_tool_call_id);
    frame->meta = from->has_meta ? meta : NULL;
}

/* Others may have it, at once. */
static void give_up_entry(struct remote__direct *direct, peg_str id)
{
    char grace[24];

    snprintf(grace, sizeof(grace), "%lld", (long long)direct->grace_ms);
    direct->has_given_up = true;
    DIRECT_ASK(direct, &(struct remote__direct_command){0}, peg__str("XCLAIM"),
               peg__str(direct->key), peg__str(PULSE_PROVIDERS),
               peg__str(direct->prov->incarnation), peg__str("0"), id, peg__str("IDLE"),
               peg__str(grace), peg__str("JUSTID"));
}

static void start_frame(struct remote__direct *direct, const Pegboard__V1__Call *frame, peg_str id)
{
    struct remote__prov_call *call = NULL;
    const peg_status status = remote__prov_call_new(direct->prov, frame, &call);

    if (status == PEG_ELIMIT) {
        remote__prov_count_refused(direct->prov, frame, "E_PULSE_ENTRY");
        remote__direct_ack(direct, id);
        return;
    }
    if (status) {
        give_up_entry(direct, id);
        return;
    }
    call->key = call->route;
    if (!remote__prov_start_call(call))
        give_up_entry(direct, id);
    remote__prov_call_unref(call);
}

static void take_call_entry(struct remote__direct *direct, const struct pulse_call *from,
                            peg_str id, unsigned attempt)
{
    peg_provider *prov = direct->prov;
    const int64_t now_ms = peg_clock_now_ms(peg_clock_system());
    Pegboard__V1__Call frame;
    Pegboard__V1__CallMeta meta;

    if (peg__map_find(&prov->calls, id))
        return;
    if (remote__prov_is_recent(prov, id)) {
        remote__direct_ack(direct, id);
        return;
    }
    if (!remote__direct_room(direct)) {
        give_up_entry(direct, id);
        return;
    }
    fill_frame(from, id, attempt, &frame, &meta);
    if (from->deadline_unix_ms && from->deadline_unix_ms <= now_ms) {
        remote__prov_count_refused(prov, &frame, "E_DEADLINE_EXCEEDED");
        remote__direct_ack(direct, id);
        return;
    }
    frame.timeout_ms = from->deadline_unix_ms ? from->deadline_unix_ms - now_ms : 0;
    start_frame(direct, &frame, id);
}

/* ---- entries ------------------------------------------------------------------------------- */

static void handle_entry(struct remote__direct *direct, const struct pulse_entry *entry, peg_str id,
                         unsigned attempt)
{
    if (entry->event == PULSE_CALL) {
        take_call_entry(direct, &entry->call, id, attempt);
        return;
    }
    if (entry->event == PULSE_PING) {
        direct->seeks_ping = false;
        remote__direct_pong(direct, entry->ping.ping_id.ptr);
    }
    remote__direct_ack(direct, id);
}

/* The value of a field; "" if there is none. */
static peg_str entry_field_of(const struct resp_value *fields, const char *name)
{
    const struct resp_value *item = fields + 1;

    for (size_t i = 0; i + 1 < fields->n_items; i += 2) {
        const struct resp_value *value = resp_next(item);

        if (item->kind == RESP_TEXT && value->kind == RESP_TEXT && peg__str_is(item->text, name))
            return value->text;
        item = resp_next(value);
    }
    return peg__str("");
}

static void take_entry(struct remote__direct *direct, const struct resp_value *item,
                       unsigned attempt)
{
    const struct resp_value *id = resp_item(item, 0);
    const struct resp_value *fields = resp_item(item, 1);
    struct pulse_entry entry = {0};
    peg_error error;
    peg_status status;

    if (!id || id->kind != RESP_TEXT || id->text.len >= DIRECT_ENTRY_ID || !fields ||
        !resp_is_list(fields))
        return;
    if (attempt == 1)
        snprintf(direct->last_id, sizeof(direct->last_id), PEG_FMT, PEG_ARG(id->text));
    status =
        pulse_entry_read(entry_field_of(fields, "n"), entry_field_of(fields, "p"), &entry, &error);
    if (status == PEG_ENOMEM) {
        give_up_entry(direct, id->text);
        return;
    }
    if (status) { /* it would be no better the next time */
        peg__log(PEG_LOG_WARN, error.code, "entry %.43s of toolset '%.64s' is skipped: %s",
                 id->text.ptr, direct->prov->config.toolset, error.message);
        remote__direct_ack(direct, id->text);
        return;
    }
    handle_entry(direct, &entry, id->text, attempt);
    pulse_entry_free(&entry);
}

void remote__direct_take_entries(struct remote__direct *direct, const struct resp_value *entries,
                                 unsigned attempt)
{
    const struct resp_value *item = entries + 1;

    for (size_t i = 0; resp_is_list(entries) && i < entries->n_items; i++) {
        take_entry(direct, item, attempt);
        item = resp_next(item);
    }
}

/* ---- reading ------------------------------------------------------------------------------- */

static void on_entries(struct redis_request *request, const struct resp_value *reply)
{
    struct remote__direct *direct = peg__container_of(request, struct remote__direct, read);
    const struct resp_value *entries = reply ? resp_item(reply, 1) : NULL;

    direct->is_reading = false;
    if (reply && reply->kind == RESP_ERROR) {
        redis_session_check_reply(direct->reader, reply);
        remote__direct_lose_place(direct);
    } else if (entries) {
        remote__direct_take_entries(direct, entries, 1);
    } else {
        direct->seeks_ping = false; /* there is none */
    }
    if (reply && reply->kind != RESP_ERROR)
        remote__direct_read(direct);
    remote__prov_check_end(direct->prov);
}

static peg_status put_read(struct remote__direct *direct, size_t room)
{
    const bool is_small = room && room < PEG_LIMIT_DIRECT_READ;
    struct peg__buf *out = &direct->reader_queue.out;
    const size_t mark = redis_queue_mark(&direct->reader_queue);

    resp_put_command(out, 11);
    resp_puts(out, "XREADGROUP");
    resp_puts(out, "GROUP");
    resp_puts(out, PULSE_PROVIDERS);
    resp_puts(out, direct->prov->incarnation);
    resp_puts(out, "COUNT");
    resp_put_number(out, is_small ? (int64_t)room : PEG_LIMIT_DIRECT_READ);
    resp_puts(out, "BLOCK");
    resp_put_number(out, PEG_LIMIT_DIRECT_BLOCK_MS);
    resp_puts(out, "STREAMS");
    resp_puts(out, direct->key);
    resp_puts(out, ">");
    direct->read.fn = on_entries;
    return redis_queue_add(&direct->reader_queue, mark, &direct->read);
}

void remote__direct_read(struct remote__direct *direct)
{
    const size_t room = remote__direct_room(direct);

    if (direct->phase != DIRECT_SERVING || !direct->is_joined || direct->is_reading ||
        !direct->reader || !redis_session_is_ready(direct->reader))
        return;
    if (!direct->seeks_ping && (!room || direct->is_claiming))
        return; /* at the next tick, or when a call has ended */
    direct->is_reading = put_read(direct, room) == PEG_OK; /* else at the next tick */
    redis_session_send(direct->reader, &direct->reader_queue);
}
