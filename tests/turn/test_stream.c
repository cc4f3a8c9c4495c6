/* SPDX-License-Identifier: Apache-2.0 */

#include "turn/loop/loop.h"

#include "../t.h"
#include "base/text/str.h"

/* ---- fixture: a context whose events are written down, on a clock that we move ---- */

struct world {
    peg_clock *clock;
    peg_ctx *ctx;
    struct peg__streams streams;
    char trace[1024];
    size_t len;
    size_t n_events;
    peg_event last; /* strings of it are gone; times and flags are not */
    char checksum[65];
    /* The message that a sink adds to when it handles an event. */
    const char *more_id;
    peg_status more_status;
};

static void note_stream(struct world *w, const char *what, const peg_stream_event *e)
{
    w->len += (size_t)snprintf(w->trace + w->len, sizeof(w->trace) - w->len,
                               "%s %.*s +%.*s =%.*s%s; ", what, PEG_ARG(e->id), PEG_ARG(e->delta),
                               PEG_ARG(e->full), e->is_complete ? " done" : "");
}

static void note_call(struct world *w, const peg_tool_call_event *e)
{
    w->len +=
        (size_t)snprintf(w->trace + w->len, sizeof(w->trace) - w->len, "call %.*s %.*s %.*s%s%s; ",
                         PEG_ARG(e->call_id), PEG_ARG(e->tool), PEG_ARG(e->args),
                         e->is_complete ? " done" : "", e->is_error ? " error" : "");
    snprintf(w->checksum, sizeof(w->checksum), "%.*s", PEG_ARG(e->checksum));
}

static peg_status notify(struct world *w, peg_event_kind kind, const char *id, const char *delta,
                         bool is_complete, peg_error *reterr)
{
    const struct peg__stream_part part = {peg_cstr(id), peg_cstr(delta), is_complete};

    return peg__streams_notify(&w->streams, w->ctx, kind, &part, reterr);
}

static void hear(const peg_event *event, void *user)
{
    struct world *w = user;
    const char *id = w->more_id;

    w->n_events++;
    w->last = *event;
    if (event->kind == PEG_EVENT_MESSAGE)
        note_stream(w, "message", &event->u.stream);
    else if (event->kind == PEG_EVENT_THOUGHT)
        note_stream(w, "thought", &event->u.stream);
    else
        note_call(w, &event->u.tool_call);
    w->more_id = NULL;
    if (id)
        w->more_status = notify(w, PEG_EVENT_MESSAGE, id, "more", false, NULL);
}

static peg_status world_new(struct world *w)
{
    peg_ctx *plain = NULL;
    peg_ctx *timed = NULL;
    peg_status status;

    *w = (struct world){.streams = PEG__STREAMS};
    status = peg_clock_manual_new(1000, &w->clock, NULL);
    if (!status)
        status = peg_ctx_new(&plain, NULL);
    if (!status)
        status = peg_ctx_with_clock(plain, w->clock, &timed, NULL);
    if (!status)
        status = peg_ctx_with_events(timed, hear, w, &w->ctx, NULL);
    peg_ctx_unref(plain);
    peg_ctx_unref(timed);
    return status;
}

static void world_done(struct world *w)
{
    peg__streams_free(&w->streams);
    peg_ctx_unref(w->ctx);
    peg_clock_manual_free(w->clock);
}

#define WORLD(w)                                                                                   \
    PEG_CLEANUP(world_done) struct world w;                                                        \
    CHECK_INT(world_new(&(w)), PEG_OK)

static peg_str trace(const struct world *w)
{
    return peg__strn(w->trace, w->len);
}

static peg_status message(struct world *w, const char *id, const char *delta, bool is_complete)
{
    return notify(w, PEG_EVENT_MESSAGE, id, delta, is_complete, NULL);
}

static peg_record *record_of(const char *key, const char *tool, const char *args, bool is_error)
{
    const peg_record_def def = {PEG_RECORD_DEF_INIT,      .key = peg_cstr(key),
                                .call_id = PEG_LIT("c1"), .tool = peg_cstr(tool),
                                .args = peg_cstr(args),   .is_error = is_error,
                                .text = PEG_LIT("done")};
    peg_record *record = NULL;
    peg_error error;

    CHECK_STATUS(peg_record_new(&def, &record, &error), PEG_OK, error);
    return record;
}

static peg_status notify_call(struct world *w, struct peg__call_part part, peg_error *reterr)
{
    return peg__streams_notify_call(&w->streams, w->ctx, &part, reterr);
}

#define CALL(...) ((struct peg__call_part){__VA_ARGS__})

/* ---- messages and thoughts ------------------------------------------------------ */

/* T99 */
TEST(stream_tells_the_whole_and_what_was_added)
{
    WORLD(w);

    CHECK_INT(message(&w, "m", "Hel", false), PEG_OK);
    CHECK_INT(message(&w, "m", "lo", false), PEG_OK);
    CHECK_INT(message(&w, "m", "!", true), PEG_OK);

    CHECK_STR(trace(&w), "message m +Hel =Hel; message m +lo =Hello; message m +! =Hello! done; ");
}

/* T99 */
TEST(stream_that_is_complete_takes_no_more)
{
    WORLD(w);
    peg_error error;

    CHECK_INT(message(&w, "m", "a", true), PEG_OK);

    CHECK_INT(notify(&w, PEG_EVENT_MESSAGE, "m", "b", false, &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_WRONG_STATE");
    CHECK_INT(message(&w, "m", "", true), PEG_ESTATE);
    CHECK_INT(w.n_events, 1);
}

TEST(stream_keeps_ids_and_kinds_apart)
{
    WORLD(w);

    CHECK_INT(message(&w, "1", "a", false), PEG_OK);
    CHECK_INT(message(&w, "2", "b", false), PEG_OK);
    CHECK_INT(notify(&w, PEG_EVENT_THOUGHT, "1", "c", true, NULL), PEG_OK);
    CHECK_INT(message(&w, "1", "d", true), PEG_OK);

    CHECK_STR(trace(&w), "message 1 +a =a; message 2 +b =b; thought 1 +c =c done; "
                         "message 1 +d =ad done; ");
}

TEST(stream_tells_when_it_began_grew_and_ended)
{
    WORLD(w);

    CHECK_INT(message(&w, "m", "a", false), PEG_OK);
    CHECK_INT(w.last.u.stream.created_ms, 1000);
    CHECK_INT(w.last.u.stream.completed_ms, 0);
    peg_clock_manual_advance(w.clock, 5);
    CHECK_INT(message(&w, "m", "b", true), PEG_OK);

    CHECK_INT(w.last.u.stream.created_ms, 1000);
    CHECK_INT(w.last.u.stream.updated_ms, 1005);
    CHECK_INT(w.last.u.stream.completed_ms, 1005);
}

TEST(stream_may_grow_by_nothing)
{
    WORLD(w);

    CHECK_INT(message(&w, "m", NULL, false), PEG_OK);
    CHECK_INT(message(&w, "m", "", true), PEG_OK);

    CHECK_STR(trace(&w), "message m + =; message m + = done; ");
}

TEST(stream_refuses_ids_that_cannot_be)
{
    WORLD(w);
    char id[PEG_LIMIT_CALL_ID_BYTES + 2];
    peg_error error;

    CHECK_INT(notify(&w, PEG_EVENT_MESSAGE, "", "x", false, &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    memset(id, 'i', sizeof(id) - 1);
    id[sizeof(id) - 1] = '\0';
    CHECK_INT(message(&w, id, "x", false), PEG_EINVAL);
    CHECK_INT(notify_call(&w, CALL(.call_id = PEG_LIT("")), NULL), PEG_EINVAL);
    CHECK_INT(w.n_events, 0);
}

TEST(stream_refuses_more_bytes_than_the_limit_until_some_are_complete)
{
    WORLD(w);
    const size_t n = PEG_LIMIT_STREAM_BYTES;
    char *bytes = calloc(1, n);
    struct peg__stream_part part = {peg__str("a"), {bytes, n}, false};
    peg_error error;

    CHECK(bytes != NULL);
    bytes[0] = 'x';
    CHECK_INT(peg__streams_notify(&w.streams, w.ctx, PEG_EVENT_MESSAGE, &part, NULL), PEG_OK);

    CHECK_INT(notify(&w, PEG_EVENT_THOUGHT, "b", "y", false, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_STREAM_TOO_LARGE");
    CHECK(strstr(error.message, "open streams") != NULL);
    CHECK_INT(notify_call(&w, CALL(.call_id = PEG_LIT("c")), NULL), PEG_ELIMIT);
    CHECK_INT(message(&w, "a", "", true), PEG_OK);
    CHECK_INT(notify(&w, PEG_EVENT_THOUGHT, "b", "y", false, &error), PEG_OK);
    free(bytes);
}

TEST(stream_refuses_more_things_than_the_limit)
{
    WORLD(w);
    char id[32];
    peg_error error;

    for (int i = 0; i < PEG_LIMIT_STREAMS; i++) {
        w.len = 0;
        snprintf(id, sizeof(id), "%d", i);
        CHECK_INT(message(&w, id, "", true), PEG_OK);
    }

    CHECK_INT(notify(&w, PEG_EVENT_MESSAGE, "one more", "x", false, &error), PEG_ELIMIT);
    CHECK(strstr(error.message, "streams of a kind") != NULL);
}

TEST(stream_lets_a_sink_tell_of_other_things_only)
{
    WORLD(w);

    w.more_id = "m";
    CHECK_INT(message(&w, "m", "a", false), PEG_OK);
    CHECK_INT(w.more_status, PEG_ESTATE);
    w.more_id = "n";
    CHECK_INT(message(&w, "m", "b", false), PEG_OK);
    CHECK_INT(w.more_status, PEG_OK);

    CHECK_STR(trace(&w), "message m +a =a; message m +b =ab; message n +more =more; ");
}

/* ---- tool calls ----------------------------------------------------------------- */

/* T99, T100 */
TEST(stream_announces_a_call_once_and_completes_it_once)
{
    WORLD(w);
    peg_record *record = record_of(NULL, "look", "{\"x\":1}", false);
    peg_error error;

    CHECK_INT(notify_call(&w,
                          CALL(.call_id = PEG_LIT("c1"), .tool = PEG_LIT("look"),
                               .args = PEG_LIT("{\"x\":1}")),
                          NULL),
              PEG_OK);
    CHECK_STR(peg__str(w.checksum), peg_record_checksum(record));
    CHECK(!w.last.u.tool_call.record);
    CHECK_INT(notify_call(&w, CALL(.call_id = PEG_LIT("c1")), &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_WRONG_STATE");
    peg_clock_manual_advance(w.clock, 7);
    CHECK_INT(notify_call(&w, CALL(.call_id = PEG_LIT("c1"), .record = record), NULL), PEG_OK);
    CHECK_INT(notify_call(&w, CALL(.call_id = PEG_LIT("c1"), .record = record), &error),
              PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_WRONG_STATE");
    CHECK_INT(notify_call(&w, CALL(.call_id = PEG_LIT("c1")), NULL), PEG_ESTATE);

    CHECK_STR(trace(&w), "call c1 look {\"x\":1}; call c1 look {\"x\":1} done; ");
    CHECK(w.last.u.tool_call.record == record);
    CHECK_INT(w.last.u.tool_call.created_ms, 1000);
    CHECK_INT(w.last.u.tool_call.completed_ms, 1007);
    peg_record_unref(record);
}

/* T100 */
TEST(stream_announces_a_call_that_is_only_completed)
{
    WORLD(w);
    peg_record *record = record_of(NULL, "look", "{\"x\":1}", true);

    CHECK_INT(notify_call(&w, CALL(.call_id = PEG_LIT("c1"), .record = record), NULL), PEG_OK);

    CHECK_STR(trace(&w), "call c1 look {\"x\":1}; call c1 look {\"x\":1} done error; ");
    CHECK_STR(peg__str(w.checksum), peg_record_checksum(record));
    peg_record_unref(record);
}

TEST(stream_tells_a_call_without_a_name_by_a_placeholder)
{
    WORLD(w);

    CHECK_INT(notify_call(&w, CALL(.call_id = PEG_LIT("c1")), NULL), PEG_OK);

    CHECK_STR(trace(&w), "call c1 (unnamed tool call) {}; ");
}

TEST(stream_takes_arguments_that_are_no_object_for_an_empty_one)
{
    WORLD(w);
    peg_record *empty = record_of(NULL, "look", "{}", false);

    CHECK_INT(notify_call(&w,
                          CALL(.call_id = PEG_LIT("1"), .tool = PEG_LIT("look"),
                               .args = PEG_LIT("{broken")),
                          NULL),
              PEG_OK);
    CHECK_STR(peg__str(w.checksum), peg_record_checksum(empty));
    w.checksum[0] = '\0';
    CHECK_INT(
        notify_call(&w,
                    CALL(.call_id = PEG_LIT("2"), .tool = PEG_LIT("look"), .args = PEG_LIT("[1]")),
                    NULL),
        PEG_OK);
    CHECK_STR(peg__str(w.checksum), peg_record_checksum(empty));
    peg_record_unref(empty);
}

TEST(stream_shows_the_checksum_that_it_is_given)
{
    WORLD(w);

    CHECK_INT(notify_call(&w, CALL(.call_id = PEG_LIT("1"), .checksum = "abc"), NULL), PEG_OK);

    CHECK_STR(peg__str(w.checksum), "abc");
}

/* T100, T115 */
TEST(stream_keeps_calls_that_we_run_apart_by_their_record)
{
    WORLD(w);
    peg_record *one = record_of("k1", "look", "{}", false);
    peg_record *two = record_of("k2", "look", "{}", false);

    peg__streams_announce_call(&w.streams, w.ctx, one, peg_record_args(one));
    CHECK_INT(peg__streams_complete_call(&w.streams, w.ctx, one, NULL), PEG_OK);
    peg__streams_announce_call(&w.streams, w.ctx, two, peg_record_args(two));
    CHECK_INT(peg__streams_complete_call(&w.streams, w.ctx, two, NULL), PEG_OK);

    CHECK_STR(trace(&w), "call c1 look {}; call c1 look {} done; "
                         "call c1 look {}; call c1 look {} done; ");
    peg_record_unref(one);
    peg_record_unref(two);
}

TEST(stream_never_shows_the_arguments_that_a_record_has)
{
    WORLD(w);
    peg_record *record = record_of("k", "login", "{\"password\":\"x\"}", false);
    peg_record *masked = record_of("m", "login", "{\"password\":\"***\"}", false);
    peg_record *other = record_of("o", "login", "{\"password\":\"x\"}", false);

    peg__streams_announce_call(&w.streams, w.ctx, record, peg_record_args(masked));
    CHECK_INT(peg__streams_complete_call(&w.streams, w.ctx, record, NULL), PEG_OK);
    peg__streams_announce_call(&w.streams, w.ctx, masked, NULL);
    CHECK_INT(peg__streams_complete_call(&w.streams, w.ctx, masked, NULL), PEG_OK);
    CHECK_INT(peg__streams_complete_call(&w.streams, w.ctx, other, NULL), PEG_OK);

    CHECK_STR(trace(&w), "call c1 login {\"password\":\"***\"}; "
                         "call c1 login {\"password\":\"***\"} done; "
                         "call c1 login {}; call c1 login {} done; "
                         "call c1 login {}; call c1 login {} done; ");
    peg_record_unref(record);
    peg_record_unref(masked);
    peg_record_unref(other);
}

TEST(stream_does_nothing_for_our_calls_when_nobody_listens)
{
    struct peg__streams streams = PEG__STREAMS;
    peg_record *record = record_of("k", "look", "{}", false);
    peg_ctx *ctx = NULL;

    CHECK_INT(peg_ctx_new(&ctx, NULL), PEG_OK);
    peg__streams_announce_call(&streams, ctx, record, peg_record_args(record));
    CHECK_INT(peg__streams_complete_call(&streams, ctx, record, NULL), PEG_OK);

    CHECK_INT(streams.calls.n, 0);
    peg__streams_free(&streams);
    peg_ctx_unref(ctx);
    peg_record_unref(record);
}

/* ---- out of memory -------------------------------------------------------------- */

TORTURE(stream_of_a_message_survives_any_allocation_failure)
{
    struct world w;
    char delta[200];
    peg_status status = world_new(&w);

    memset(delta, 'd', sizeof(delta));
    for (size_t i = 0; i < 8 && !status; i++) {
        const struct peg__stream_part part = {peg__str("m"), {delta, sizeof(delta)}, i == 7};
        const size_t n_bytes = w.streams.n_bytes;

        w.len = 0;
        status = peg__streams_notify(&w.streams, w.ctx, PEG_EVENT_MESSAGE, &part, NULL);
        CHECK_INT(w.n_events, status ? i : i + 1);
        CHECK(!status || w.streams.n_bytes == n_bytes);
        CHECK(!status || w.streams.messages.n == (i > 0));
    }
    world_done(&w);
    return status;
}

TORTURE(stream_of_a_call_survives_any_allocation_failure)
{
    const struct peg__call_part part = {
        .call_id = PEG_LIT("c"), .tool = PEG_LIT("t"), .args = PEG_LIT("{\"x\":[1,2]}")};
    struct world w;
    peg_status status = world_new(&w);

    if (!status) {
        status = notify_call(&w, part, NULL);
        CHECK_INT(w.n_events, status ? 0 : 1);
        CHECK_INT(w.streams.calls.n, status ? 0 : 1);
    }
    world_done(&w);
    return status;
}

TORTURE(stream_announces_late_what_memory_did_not_allow)
{
    const peg_record_def def = {PEG_RECORD_DEF_INIT, .key = PEG_LIT("k"), .call_id = PEG_LIT("c1"),
                                .tool = PEG_LIT("t"), .text = PEG_LIT("done")};
    peg_record *record = NULL;
    struct world w;
    peg_status status = world_new(&w);

    if (!status)
        status = peg_record_new(&def, &record, NULL);
    if (!status) {
        peg__streams_announce_call(&w.streams, w.ctx, record, peg_record_args(record));
        status = peg__streams_complete_call(&w.streams, w.ctx, record, NULL);
        CHECK_INT(w.n_events, status ? 0 : 2);
    }
    peg_record_unref(record);
    world_done(&w);
    return status;
}
