/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The steps of a call that was sent, or is followed. One thing is pending at a time; what happens
 * meanwhile is noted in the call, and direct_go_on() decides from WAITING what is next.
 */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "bus/redis/redis.h"
#include "gateway/direct/internal.h"

/* Failures, one behind the other. Each takes up to PEG_LIMIT_REDIS_HOLD_MS; a read that fails is
 * tried again with the next connection, so that many of them are one that breaks connections. */
enum { MAX_READS = 8, MAX_WRITES = 5, MAX_WITHDRAWALS = 2 };

enum {
    FOLLOWER_GRACE_MS = 1000, /* a follower lets the driver decide first */
    GIVE_UP_MS = 2000,        /* behind the deadline, Redis has so long */
};

/* ---- timers ---------------------------------------------------------------------------------- */

static void on_again(struct net_timer *timer);

static void try_again(struct direct_call *call, int64_t ms)
{
    struct bus *bus = call->direct->bus;

    call->again.fn = on_again;
    bus_arm(bus, &call->again, bus_now_ns(bus) + ms * PEG_NS_PER_MS);
}

/* Redis has not said in time what became of the call, and what it says later is ignored. */
static void give_up(struct direct_call *call)
{
    static const struct calls_outcome outcome = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .message = PEG_LIT("the deadline passed, and Redis does not say what became of the "
                           "call" DIRECT_MAY_HAVE_RUN),
        .was_started = true,
    };

    direct_end(call, &outcome);
}

static void on_call_deadline(struct net_timer *timer)
{
    struct direct_call *call = peg__container_of(timer, struct direct_call, deadline);

    if (call->is_past_deadline) {
        give_up(call);
        return;
    }
    call->is_past_deadline = true;
    direct_arm_deadline(call, bus_now_ns(call->direct->bus) + GIVE_UP_MS * PEG_NS_PER_MS);
    if (call->ending == DIRECT_GOES_ON) {
        call->ending = DIRECT_DEADLINE;
    } else { /* it was canceled before, and nothing has come of that */
        call->is_last_read = true;
        call->has_changed = true;
    }
    direct_go_on(call);
}

void direct_arm_deadline(struct direct_call *call, int64_t due_ns)
{
    call->deadline.fn = on_call_deadline;
    bus_arm(call->direct->bus, &call->deadline, due_ns);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void end_with(struct direct_call *call, struct peg__blob *blob)
{
    struct peg__blob *kept = peg__blob_ref(blob);
    struct calls_outcome outcome = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .message = PEG_LIT("the outcome of this call cannot be read: a newer gateway wrote it"),
        .was_started = true,
    };

    calls_outcome_read(kept, &outcome);
    direct_end(call, &outcome);
    peg__blob_unref(kept);
}

static void end_without_memory(struct direct_call *call)
{
    static const struct calls_outcome outcome = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .message =
            PEG_LIT("the gateway has no memory for the end of this call" DIRECT_MAY_HAVE_RUN),
        .was_started = true,
    };

    direct_end(call, &outcome);
}

static void write_outcome(struct direct_call *call);

/* Others may get another outcome, unless this says nothing. */
static const struct calls_outcome unwritten = {
    .kind = CALLS_KIND_UNKNOWN,
    .error = CALLS_OUTCOME_UNKNOWN,
    .message = PEG_LIT("Redis cannot be reached to keep the end of this call: ask again with its "
                       "identity"),
    .was_started = true,
};

static void on_written(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct direct_call *call = peg__container_of(wait, struct direct_call, wait);

    if (answer->status && ++call->n_failures < MAX_WRITES)
        try_again(call, DIRECT_AGAIN_MS);
    else if (answer->status)
        direct_end(call, &unwritten);
    else
        end_with(call, answer->written ? call->outcome : answer->current);
}

/* No room for it: who asks later learns that there was one. */
static void write_placeholder(struct direct_call *call, int64_t keep_until_ms)
{
    const struct bus_key key = direct_register(call, BUS_RESULT);
    struct peg__blob *blob = calls_outcome_placeholder(1, call->outcome->len,
                                                       call->direct->calls->options.has_principals);

    if (blob)
        bus_put_if_absent(call->direct->bus, &key, blob, keep_until_ms, NULL);
    peg__blob_unref(blob);
    end_with(call, call->outcome);
}

static void on_written_or_full(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct direct_call *call = peg__container_of(wait, struct direct_call, wait);
    const struct calls_loop *calls = call->direct->calls;

    if (answer->status == PEG_ELIMIT)
        write_placeholder(call, call->deadline_ms + calls->options.keep_ms);
    else
        on_written(wait, answer);
}

/* Each caller of an identity gets what its register holds. */
static void write_outcome(struct direct_call *call)
{
    const struct bus_key key = direct_register(call, BUS_RESULT);
    struct gw_direct *direct = call->direct;

    call->state = DIRECT_WRITING;
    if (!direct_is_keyed(call)) {
        end_with(call, call->outcome);
        return;
    }
    call->wait.fn = on_written_or_full;
    bus_put_if_absent(direct->bus, &key, call->outcome,
                      call->deadline_ms + direct->calls->options.keep_ms, &call->wait);
}

void direct_end_as(struct direct_call *call, enum calls_outcome_kind kind, enum calls_error error,
                   const char *message)
{
    const struct calls_outcome outcome = {
        .kind = kind,
        .error = error,
        .message = peg__str(message),
        .was_started = kind == CALLS_KIND_UNKNOWN,
    };

    if (direct_outcome_of(call, &outcome))
        write_outcome(call);
    else
        end_without_memory(call);
}

static void end_as_unknown(struct direct_call *call)
{
    direct_end_as(
        call, CALLS_KIND_UNKNOWN, CALLS_OUTCOME_UNKNOWN,
        call->ending == DIRECT_CANCELED
            ? "the call was canceled, and its provider has not said how it "
              "ended" DIRECT_MAY_HAVE_RUN
            : "the deadline passed, and a provider had taken the call" DIRECT_MAY_HAVE_RUN);
}

/* ---- results --------------------------------------------------------------------------------- */

static void on_repeated(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    struct direct_call *call = peg__container_of(wait, struct direct_call, stream);

    if (reply->status == PEG_ENOTFOUND || ++call->n_repeats == DIRECT_REPEATS)
        end_with(call, call->outcome);
    else
        try_again(call, (int64_t)DIRECT_REPEAT_MS << call->n_repeats);
}

/* An agent that read the result too early has lost it, and gets it again; one that has it has
 * removed the stream. One that comes late may read two at once, and lose both. */
static void repeat_result(struct direct_call *call)
{
    char id[BUS_ID_TEXT];
    char key[PULSE_NAME];
    struct bus_stream_add add = {.name = PEG_LIT("result"), .payload = peg__blob_str(call->result)};

    bus_id_print(&call->entry.id, id);
    add.key = pulse_result_key(peg__str(id), key);
    call->stream.fn = on_repeated;
    bus_stream_add(call->direct->bus, &add, &call->stream);
}

static void take_outcome(struct direct_call *call)
{
    if (call->is_for_agent && call->result) {
        call->state = DIRECT_REPEATING;
        try_again(call, DIRECT_REPEAT_MS);
    } else {
        write_outcome(call);
    }
}

static void on_judged(void *user, peg_status status, peg_str words)
{
    struct direct_call *call = (struct direct_call *)user;
    const char *code = status == PEG_ELIMIT ? "undecided" : "malformed_result";

    call->check = NULL;
    if (status == PEG_ENOMEM || (status && !direct_outcome_of_error(call, code, words)))
        end_without_memory(call);
    else
        take_outcome(call);
}

static void judge_on_worker(struct direct_call *call, peg_str json)
{
    struct calls_loop *calls = call->direct->calls;
    peg_schema *schema = NULL;

    call->state = DIRECT_JUDGING;
    if (calls->env->get_schema(calls->user, &call->tool->of_calls, CALLS_OUTPUT, &schema))
        call->check = calls_check_start(calls, schema, call->outcome,
                                        &(struct calls_check_text){.json = json}, on_judged, call);
    peg_schema_unref(schema);
    if (!call->check)
        end_without_memory(call);
}

static void take_result(struct direct_call *call, const struct pulse_result *result, peg_str text)
{
    peg_str unchecked;

    if (call->is_for_agent)
        call->result = peg__blob_copy(text); /* without memory it is not repeated */
    if (!direct_outcome_of_result(call, result, &unchecked))
        end_without_memory(call);
    else if (unchecked.len)
        judge_on_worker(call, unchecked);
    else
        take_outcome(call);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_of_call(const struct direct_call *call, peg_str tool_use_id)
{
    char id[BUS_ID_TEXT];

    bus_id_print(&call->entry.id, id);
    return peg__str_is(tool_use_id, id);
}

/* True: it was the result, and the call may be gone. What cannot be read is another's. */
static bool take_stream_entry(struct direct_call *call, const struct bus_stream_entry *entry)
{
    struct pulse_entry read = {.event = PULSE_UNKNOWN};
    bool is_result = false;

    snprintf(call->read_to, sizeof(call->read_to), PEG_FMT, PEG_ARG(entry->id));
    if (pulse_event_of(entry->name) <= PULSE_INIT ||
        pulse_entry_read(entry->name, entry->payload, &read, NULL))
        return false;
    if (read.event == PULSE_DELTA && is_of_call(call, read.delta.tool_use_id)) {
        direct_report_output(call, direct_pack_output(call->direct, &read.delta));
    } else if (read.event == PULSE_RESULT && is_of_call(call, read.result.tool_use_id)) {
        is_result = true;
        take_result(call, &read.result, entry->payload);
    }
    pulse_entry_free(&read);
    return is_result;
}

static void look_at_outcome(struct direct_call *call);

/* Without a connection the next one brings it here again. */
static void handle_unread(struct direct_call *call)
{
    call->state = DIRECT_WAITING;
    if (++call->n_failures >= MAX_READS)
        call->is_last_read = true;
    else if (bus_redis_is_connected(call->direct->bus))
        try_again(call, DIRECT_AGAIN_MS);
    if (call->is_last_read)
        direct_go_on(call);
}

/* `init` goes before the request: under the same epoch a stream that is not there says that the
 * request is not, either. */
static bool is_unsent(const struct direct_call *call, const struct bus_stream_reply *reply)
{
    return !call->is_following && !call->request_id[0] && !call->read_to[0] &&
           reply->epoch == call->epoch;
}

static void on_read(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    struct direct_call *call = peg__container_of(wait, struct direct_call, stream);

    if (reply->status) {
        handle_unread(call);
        return;
    }
    call->n_failures = 0;
    if (reply->n_entries == 0 && is_unsent(call, reply)) {
        direct_end_as(call, CALLS_KIND_ERROR, CALLS_SERVICE_UNAVAILABLE,
                      "Redis was lost when the call was sent, and does not have it: it was not "
                      "started; try again");
        return;
    }
    for (size_t i = 0; i < reply->n_entries; i++) {
        if (take_stream_entry(call, &reply->entries[i]))
            return;
    }
    call->state = DIRECT_WAITING;
    if (reply->n_entries == BUS_STREAM_ENTRIES)
        call->has_changed = true;
    if (reply->n_entries == 0 && call->is_following)
        look_at_outcome(call);
    else
        direct_go_on(call);
}

static void read_results(struct direct_call *call)
{
    char id[BUS_ID_TEXT];
    char key[PULSE_NAME];

    call->state = DIRECT_READING;
    call->has_changed = false;
    call->stream.fn = on_read;
    bus_id_print(&call->entry.id, id);
    bus_stream_read(call->direct->bus, pulse_result_key(peg__str(id), key), peg__str(call->read_to),
                    &call->stream);
}

/* ---- taking back ----------------------------------------------------------------------------- */

/* A provider may have it. One that was canceled may still end by itself. */
static void note_delivered(struct direct_call *call)
{
    call->was_withdrawn = true;
    if (call->ending == DIRECT_CANCELED)
        try_again(call, call->direct->calls->options.grace_ms);
}

/* Proof that no provider has got it is worth something only under the epoch of the send. */
static void on_withdrawn(struct bus_stream_wait *wait, const struct bus_stream_reply *reply)
{
    struct direct_call *call = peg__container_of(wait, struct direct_call, stream);

    call->state = DIRECT_WAITING;
    if (reply->status == PEG_EIO && ++call->n_failures < MAX_WITHDRAWALS) {
        try_again(call, DIRECT_AGAIN_MS);
        return;
    }
    call->n_failures = 0;
    if (reply->status || !reply->is_undelivered || reply->epoch != call->epoch) {
        note_delivered(call);
        direct_go_on(call);
    } else if (call->ending == DIRECT_CANCELED) {
        direct_end_as(call, CALLS_KIND_CANCELED, CALLS_CANCELED,
                      "the call was canceled before a provider took it");
    } else {
        direct_end_as(call, CALLS_KIND_TIMEOUT, CALLS_TIMEOUT,
                      "the deadline passed before a provider took the call; it was not started");
    }
}

static void withdraw(struct direct_call *call)
{
    char key[PULSE_NAME];

    call->state = DIRECT_WITHDRAWING;
    call->stream.fn = on_withdrawn;
    bus_stream_withdraw(call->direct->bus, pulse_request_key(call->toolset->name, key),
                        peg__str(call->request_id), &call->stream);
}

/* ---- what is next ---------------------------------------------------------------------------- */

void direct_go_on(struct direct_call *call)
{
    if (call->state != DIRECT_WAITING)
        return;
    if (call->ending && !call->was_withdrawn && !call->has_changed) {
        if (call->request_id[0]) {
            withdraw(call);
            return;
        }
        note_delivered(call);
    }
    if (call->ending == DIRECT_DEADLINE && !call->is_last_read && !call->has_changed) {
        call->is_last_read = true;
        call->has_changed = true;
    }
    if (call->has_changed)
        read_results(call);
    else if (call->is_last_read)
        end_as_unknown(call);
}

static void on_again(struct net_timer *timer)
{
    struct direct_call *call = peg__container_of(timer, struct direct_call, again);

    switch (call->state) {
    case DIRECT_REPEATING:
        repeat_result(call);
        break;
    case DIRECT_WRITING:
        write_outcome(call);
        break;
    case DIRECT_LOOKING:
        look_at_outcome(call);
        break;
    case DIRECT_WAITING:
        /* the grace of a cancellation is over, or something failed */
        call->is_last_read =
            call->is_last_read || (call->ending == DIRECT_CANCELED && call->was_withdrawn);
        call->has_changed = true;
        direct_go_on(call);
        break;
    default:
        break;
    }
}

static void on_tracked(struct bus_tracked *tracked)
{
    struct direct_call *call = peg__container_of(tracked, struct direct_call, tracked);

    call->has_changed = true;
    direct_go_on(call);
}

bool direct_track(struct direct_call *call)
{
    char id[BUS_ID_TEXT];
    char key[PULSE_NAME];

    bus_id_print(&call->entry.id, id);
    call->tracked.fn = on_tracked;
    return bus_track(call->direct->bus, pulse_result_key(peg__str(id), key), &call->tracked) ==
           PEG_OK;
}

/* ---- following ------------------------------------------------------------------------------- */

static void on_outcome_read(struct bus_wait *wait, const struct bus_answer *answer)
{
    struct direct_call *call = peg__container_of(wait, struct direct_call, wait);

    if (answer->status) {
        try_again(call, DIRECT_AGAIN_MS);
        return;
    }
    if (answer->current) {
        end_with(call, answer->current);
        return;
    }
    call->state = DIRECT_WAITING;
    direct_go_on(call);
}

static void look_at_outcome(struct direct_call *call)
{
    const struct bus_key key = direct_register(call, BUS_RESULT);

    call->state = DIRECT_LOOKING;
    call->wait.fn = on_outcome_read;
    bus_read(call->direct->bus, &key, &call->wait);
}

void direct_follow(struct direct_call *call, const struct calls_identity *identity)
{
    struct bus *bus = call->direct->bus;

    call->is_following = true;
    call->was_withdrawn = true;
    call->deadline_ms = identity->deadline_ms;
    memcpy(call->digest, identity->digest, sizeof(call->digest));
    if (!direct_track(call)) {
        direct_end_refused(call, CALLS_OVERLOADED,
                           peg__str("the gateway is out of memory: ask again"), 1000);
        return;
    }
    direct_arm_deadline(call, bus_now_ns(bus) +
                                  (identity->deadline_ms - bus_now_ms(bus) + FOLLOWER_GRACE_MS) *
                                      PEG_NS_PER_MS);
    call->has_changed = true;
    direct_report(call);
    look_at_outcome(call);
}

void direct_run_cancel(struct direct_call *call)
{
    if (call->is_following || call->ending)
        return;
    call->ending = DIRECT_CANCELED;
    direct_go_on(call);
}
