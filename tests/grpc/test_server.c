/* SPDX-License-Identifier: Apache-2.0 */

#include <arpa/inet.h>

#include "t.h"

#include "grpc/world.h"

/* ---- handlers: their text says what they shall do
 * ------------------------------------------------- */

/* What the server's side saw; its thread writes, the test reads when a semaphore was posted. */
struct seen {
    atomic_uint n_started;
    atomic_uint n_ended;
    _Atomic(enum grpc_code) ended_as;
    struct grpc_call *_Atomic kept;
    sem_t ended;
    sem_t started;
};

static void seen_init(struct seen *seen)
{
    memset(seen, 0, sizeof(*seen));
    sem_init(&seen->ended, 0, 0);
    sem_init(&seen->started, 0, 0);
}

static void on_start(struct grpc_call *call, void *user)
{
    struct seen *seen = user;

    (void)call;
    seen->n_started++;
    sem_post(&seen->started);
}

static void on_end(struct grpc_call *call, void *user)
{
    struct seen *seen = user;

    seen->n_ended++;
    seen->ended_as = grpc_call_ended_as(call)->code;
    sem_post(&seen->ended);
}

static void answer_with_metadata(struct grpc_call *call)
{
    const struct grpc_metadata *metadata = grpc_call_metadata(call);

    grpc_call_add_header(call, peg__str("x-header"), grpc_metadata_get(metadata, "x-text"), NULL);
    grpc_call_add_trailer(call, peg__str("x-trailer-bin"),
                          grpc_metadata_get(metadata, "x-some-bin"), NULL);
    grpc_call_reply(call, peg__str("done"));
}

static void answer_with_details(struct grpc_call *call)
{
    const struct grpc_status status = {
        GRPC_ABORTED, peg__str("\xc3\xa4 % \n end"), {"\x08\x0a\x00\xff", 4}};

    grpc_call_finish(call, &status);
}

static void unary(struct grpc_call *call, const void *message, void *user)
{
    struct seen *seen = user;
    const peg_str text = *(const peg_str *)message;

    if (peg__str_is(text, "metadata"))
        answer_with_metadata(call);
    else if (peg__str_is(text, "details"))
        answer_with_details(call);
    else if (peg__str_is(text, "fail"))
        grpc_call_fail(call, GRPC_NOT_FOUND, "there is no %s", "cat");
    else if (peg__str_is(text, "keep"))
        seen->kept = grpc_call_ref(call);
    else if (peg__str_is(text, "gzip")) {
        grpc_call_use_gzip(call);
        grpc_call_reply(call, peg__str("squeezed"));
    } else if (peg__str_is(text, "twice")) {
        grpc_call_reply(call, peg__str("first"));
        grpc_call_reply(call, peg__str("second"));
        grpc_call_fail(call, GRPC_INTERNAL, "too late");
    } else if (!peg__str_is(text, "wait"))
        grpc_call_reply(call, text);
}

/* Sends as many messages of 1,000 bytes as it is told, as fast as they go. */
static void go_on(struct grpc_call *call, void *user)
{
    intptr_t left = (intptr_t)grpc_call_state(call);
    static const char bytes[1000];

    (void)user;
    while (left > 0 && grpc_call_is_writable(call) &&
           !grpc_call_send(call, peg__strn(bytes, sizeof(bytes)), NULL))
        left--;
    grpc_call_set_state(call, (void *)left);
    if (left == 0)
        grpc_call_finish(call, &GRPC_STATUS(GRPC_OK, ""));
}

static void repeat(struct grpc_call *call, const void *message, void *user)
{
    grpc_call_set_state(call, (void *)(intptr_t)atoi(((const peg_str *)message)->ptr));
    go_on(call, user);
}

static void collect(struct grpc_call *call, const void *message, void *user)
{
    const intptr_t n = (intptr_t)grpc_call_state(call);

    (void)message;
    (void)user;
    grpc_call_set_state(call, (void *)(n + 1));
}

static void collected(struct grpc_call *call, void *user)
{
    char text[32];

    (void)user;
    snprintf(text, sizeof(text), "%d", (int)(intptr_t)grpc_call_state(call));
    grpc_call_reply(call, peg__str(text));
}

static void chat(struct grpc_call *call, const void *message, void *user)
{
    (void)user;
    if (peg__str_is(*(const peg_str *)message, "stop"))
        grpc_call_fail(call, GRPC_ABORTED, "stopped");
    else
        grpc_call_send(call, *(const peg_str *)message, NULL);
}

static void chat_ended(struct grpc_call *call, void *user)
{
    (void)user;
    grpc_call_finish(call, &GRPC_STATUS(GRPC_OK, ""));
}

static const struct grpc_handler handlers[N_METHODS] = {
    [UNARY] = {.on_start = on_start, .on_message = unary, .on_end = on_end},
    [REPEAT] = {.on_message = repeat, .on_writable = go_on, .on_end = on_end},
    [COLLECT] = {.on_message = collect, .on_half_close = collected, .on_end = on_end},
    [CHAT] = {.on_message = chat, .on_half_close = chat_ended, .on_end = on_end},
};

static struct world w;
static struct seen seen;

static void start(const struct grpc_server_options *options)
{
    const struct world_setup setup = {.server = options, .handlers = handlers, .user = &seen};

    seen_init(&seen);
    world_start(&w, &setup);
}

static peg_str text(const struct answer *a)
{
    return peg__strn(a->log, a->log_len);
}

/* ---- the four kinds of call
 * ----------------------------------------------------------------------------- */

TEST(a_unary_call_is_answered)
{
    start(NULL);
    CHECK_STR(text(world_call(&w, UNARY, "hello", NULL)), "headers message:hello end:OK ");

    sem_wait(&seen.ended);
    CHECK_INT(seen.ended_as, GRPC_OK);
    world_stop(&w);
}

TEST(a_server_streams_under_backpressure)
{
    const struct answer *a;

    start(NULL);
    a = world_call(&w, REPEAT, "5000", NULL);

    CHECK_INT(a->n_messages, 5000);
    CHECK_INT(a->n_bytes, 5000000);
    CHECK_INT(a->code, GRPC_OK);
    world_stop(&w);
}

TEST(a_client_streams)
{
    struct answer *a;

    start(NULL);
    a = world_begin(&w, COLLECT, NULL);
    for (int i = 0; i < 100; i++)
        CHECK_INT(grpc_rpc_send(a->rpc, peg__str("m"), NULL), PEG_OK);
    grpc_rpc_half_close(a->rpc);
    world_run(&w);

    CHECK_STR(text(a), "headers message:100 end:OK ");
    world_stop(&w);
}

TEST(both_sides_stream)
{
    struct answer *a;

    start(NULL);
    a = world_begin(&w, CHAT, NULL);
    for (int i = 0; i < 3; i++)
        grpc_rpc_send(a->rpc, peg__str("m"), NULL);
    grpc_rpc_half_close(a->rpc);
    world_run(&w);

    CHECK_STR(text(a), "headers message:m message:m message:m end:OK ");
    world_stop(&w);
}

TEST(a_server_may_end_a_stream_whose_client_goes_on)
{
    struct answer *a;

    start(NULL);
    a = world_begin(&w, CHAT, NULL);
    grpc_rpc_send(a->rpc, peg__str("stop"), NULL);
    world_run(&w);

    CHECK_INT(a->code, GRPC_ABORTED);
    CHECK_STR(peg__str(a->words), "stopped");
    world_stop(&w);
}

/* ---- what travels beside
 * ----------------------------------------------------------------------------------- */

TEST(metadata_goes_there_and_back_as_text_and_as_bytes)
{
    struct peg__arena arena = {0};
    struct grpc_metadata metadata = {0};
    const struct grpc_rpc_options options = {.metadata = &metadata};
    const struct answer *a;

    start(NULL);
    grpc_metadata_add(&metadata, &arena, peg__str("x-text"), peg__str("a b"), NULL);
    grpc_metadata_add(&metadata, &arena, peg__str("x-some-bin"), peg__strn("\x01\xff\x7f", 3),
                      NULL);
    a = world_call(&w, UNARY, "metadata", &options);

    CHECK_STR(peg__str(a->header), "a b");
    CHECK_STR(peg__str(a->trailer), "\x01\xff\x7f");
    world_stop(&w);
    peg__arena_free(&arena);
}

TEST(a_failure_carries_code_words_and_details)
{
    const struct answer *a;

    start(NULL);
    a = world_call(&w, UNARY, "details", NULL);

    CHECK_STR(text(a), "end:ABORTED ");
    CHECK_STR(peg__str(a->words), "\xc3\xa4 % \n end");
    CHECK_INT(a->details_len, 4);
    CHECK(memcmp(a->details, "\x08\x0a\x00\xff", 4) == 0);
    world_stop(&w);
}

TEST(an_answer_is_compressed_where_both_sides_want_it)
{
    start(NULL);
    CHECK_STR(text(world_call(&w, UNARY, "gzip", NULL)), "headers message:squeezed end:OK ");
    world_stop(&w);
}

TEST(a_compressed_request_is_read)
{
    const struct grpc_rpc_options options = {.uses_gzip = true};

    start(NULL);
    CHECK_STR(text(world_call(&w, UNARY, "flat", &options)), "headers message:flat end:OK ");
    world_stop(&w);
}

/* ---- refusals
 * --------------------------------------------------------------------------------------------------
 */

TEST(a_method_that_is_not_there_is_unimplemented)
{
    static const struct grpc_method nowhere = {.name = "X", .path = "/no.Such/Method"};
    struct answer *a;

    start(NULL);
    a = &w.answers[w.n_answers++];
    a->world = &w;
    w.n_running++;
    CHECK_INT(grpc_rpc_start(w.channel, &nowhere, NULL, &world_events, a, &a->rpc, NULL), PEG_OK);
    world_run(&w);

    CHECK_INT(a->code, GRPC_UNIMPLEMENTED);
    CHECK(strstr(a->words, "/no.Such/Method") != NULL);
    world_stop(&w);
}

TEST(a_method_without_a_handler_is_unimplemented)
{
    start(NULL);
    CHECK_INT(world_call(&w, NONE, "x", NULL)->code, GRPC_UNIMPLEMENTED);
    world_stop(&w);
}

TEST(a_message_above_the_limit_is_refused_and_the_connection_lives)
{
    const struct grpc_server_options options = {.max_message_bytes = 10};

    start(&options);
    CHECK_INT(world_call(&w, UNARY, "more than ten bytes", NULL)->code, GRPC_RESOURCE_EXHAUSTED);
    CHECK_INT(world_call(&w, UNARY, "short", NULL)->code, GRPC_OK);
    world_stop(&w);
}

TEST(a_unary_method_without_a_message_is_an_error_of_the_client)
{
    struct answer *a;

    start(NULL);
    a = world_begin(&w, UNARY, NULL);
    grpc_rpc_half_close(a->rpc);
    world_run(&w);

    CHECK_INT(a->code, GRPC_INTERNAL);
    CHECK(strstr(a->words, "there was none") != NULL);
    world_stop(&w);
}

TEST(only_the_first_answer_counts)
{
    start(NULL);
    CHECK_STR(text(world_call(&w, UNARY, "twice", NULL)), "headers message:first end:OK ");
    world_stop(&w);
}

TEST(a_service_is_added_once)
{
    peg_error error;

    start(NULL);
    CHECK_INT(grpc_server_add(w.server, &world_service, handlers, NULL, &error), PEG_EEXISTS);
    CHECK_STR(peg__str(error.code), "E_GRPC_SERVICE");
    world_stop(&w);
}

/* ---- ends
 * ---------------------------------------------------------------------------------------------------------
 */

/* A call whose time is over after its handler has heard of it. A machine that is slow may need all
 * of the time to get there: then there is more of it. What is asked after it on the same connection
 * is answered after it, and so tells whether it came there. */
static void call_for_too_long(const char *text)
{
    struct grpc_rpc_options options = {.timeout_ms = 30};
    unsigned n_before;

    CHECK_INT(world_call(&w, UNARY, "x", NULL)->code, GRPC_OK);
    do {
        n_before = seen.n_started;
        CHECK_INT(world_call(&w, UNARY, text, &options)->code, GRPC_DEADLINE_EXCEEDED);
        CHECK_INT(world_call(&w, UNARY, "x", NULL)->code, GRPC_OK);
        options.timeout_ms *= 4;
    } while (seen.n_started == n_before + 1 && options.timeout_ms < 40000);
    CHECK_INT(seen.n_started, n_before + 2);
}

static void await_all_ends(void)
{
    for (unsigned i = 0; i < seen.n_started; i++)
        sem_wait(&seen.ended);
}

TEST(a_deadline_ends_a_call_on_both_sides)
{
    start(NULL);
    call_for_too_long("wait");
    await_all_ends();

    CHECK_INT(seen.n_ended, seen.n_started);
    world_stop(&w);
}

TEST(a_cancellation_reaches_the_handler)
{
    struct answer *a;

    start(NULL);
    a = world_begin(&w, CHAT, NULL);
    a->cancels_at_first = true;
    grpc_rpc_send(a->rpc, peg__str("m"), NULL);
    world_run(&w);

    CHECK_STR(text(a), "headers message:m end:CANCELLED ");
    sem_wait(&seen.ended);
    CHECK_INT(seen.ended_as, GRPC_CANCELLED);
    world_stop(&w);
}

/* Until the server's handler has heard of so many calls. */
static void run_until_started(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        while (sem_trywait(&seen.started)) {
            net_loop_stop(w.loop);
            net_loop_run(w.loop);
        }
    }
}

TEST(a_lost_connection_ends_its_calls)
{
    start(NULL);
    world_ask(&w, UNARY, "wait", NULL);
    world_ask(&w, UNARY, "wait", NULL);
    run_until_started(2);
    w.channel = grpc_channel_free(w.channel);
    sem_wait(&seen.ended);
    sem_wait(&seen.ended);

    CHECK_INT(w.answers[0].code, GRPC_CANCELLED);
    CHECK_INT(w.answers[0].n_ends, 1);
    CHECK_INT(seen.n_ended, 2);
    world_stop(&w);
}

TEST(a_freed_server_ends_what_runs)
{
    start(NULL);
    world_ask(&w, UNARY, "wait", NULL);
    run_until_started(1);
    w.server = grpc_server_free(w.server);
    world_run(&w);

    CHECK_INT(w.answers[0].code, GRPC_UNAVAILABLE);
    CHECK_INT(seen.n_ended, 1);
    world_stop(&w);
}

TEST(what_is_said_to_an_ended_call_changes_nothing)
{
    struct grpc_call *call;
    peg_error error;

    start(NULL);
    call_for_too_long("keep");
    await_all_ends();
    w.server = (grpc_server_drain(w.server, 0), w.server);
    call = seen.kept;

    CHECK(grpc_call_has_ended(call));
    CHECK_INT(grpc_call_send(call, peg__str("late"), &error), PEG_ECANCELED);
    CHECK_STR(peg__str(error.code), "E_CALL_ENDED");
    grpc_call_fail(call, GRPC_INTERNAL, "late");
    /* The client's clock or ours was first. */
    CHECK(grpc_call_ended_as(call)->code == GRPC_DEADLINE_EXCEEDED ||
          grpc_call_ended_as(call)->code == GRPC_CANCELLED);
    CHECK_STR(peg__str(grpc_call_peer(call)), "");
    grpc_call_unref(call);
    world_stop(&w);
}

/* ---- many
 * --------------------------------------------------------------------------------------------------------------
 */

TEST(many_calls_at_once_each_get_their_own_answer)
{
    char name[16];

    start(NULL);
    for (int i = 0; i < WORLD_CALLS; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        world_ask(&w, UNARY, name, NULL);
    }
    world_run(&w);

    for (int i = 0; i < WORLD_CALLS; i++) {
        snprintf(name, sizeof(name), "message:n%d ", i);
        CHECK(strstr(w.answers[i].log, name) != NULL);
        CHECK_INT(w.answers[i].n_ends, 1);
    }
    world_stop(&w);
}

TEST(several_loops_share_the_connections)
{
    const struct grpc_channel_options channel = {.n_connections = 4};
    const struct world_setup setup = {
        .handlers = handlers, .user = &seen, .n_loops = 2, .channel = &channel};
    struct grpc_server_counts counts;

    seen_init(&seen);
    world_start(&w, &setup);
    for (int i = 0; i < WORLD_CALLS; i++)
        world_ask(&w, UNARY, "x", NULL);
    world_run(&w);

    grpc_server_counts(w.server, &counts);
    CHECK_INT(counts.n_started, WORLD_CALLS);
    CHECK(counts.n_connections >= 1 && counts.n_connections <= 4);
    world_stop(&w);
}

static size_t load_of(unsigned loop)
{
    return net_loop_load(net_loops_at(w.loops, loop));
}

/* By streams, not by connections: one with many calls is a crowd. */
TEST(a_new_connection_comes_to_the_loop_with_the_fewest_streams)
{
    enum { N_CALLS = 20, N_MORE = 8 };
    const struct world_setup setup = {.handlers = handlers, .user = &seen, .n_loops = 2};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned busy;
    int fds[N_MORE];

    seen_init(&seen);
    world_start(&w, &setup);
    for (int i = 0; i < N_CALLS; i++)
        world_ask(&w, UNARY, "wait", NULL);
    run_until_started(N_CALLS);
    busy = load_of(0) < load_of(1);
    CHECK(load_of(busy) > N_CALLS);
    address.sin_port = htons((uint16_t)atoi(strrchr(w.address, ':') + 1));
    for (int i = 0; i < N_MORE; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM, 0);
        CHECK_INT(connect(fds[i], (struct sockaddr *)&address, sizeof(address)), 0);
        for (int ms = 0; ms < 60000 && load_of(!busy) < (size_t)i + 1; ms++)
            usleep(1000);
    }

    CHECK_INT(load_of(!busy), N_MORE);
    for (int i = 0; i < N_MORE; i++)
        close(fds[i]);
    world_stop(&w);
}

TEST(a_unix_socket_serves_as_well)
{
    char address[64];
    const struct world_setup setup = {.handlers = handlers, .user = &seen, .address = address};

    snprintf(address, sizeof(address), "unix:@pegboard-test-%d", (int)getpid());
    seen_init(&seen);
    world_start(&w, &setup);

    CHECK_INT(world_call(&w, UNARY, "hello", NULL)->code, GRPC_OK);
    world_stop(&w);
}
