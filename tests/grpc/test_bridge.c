/* SPDX-License-Identifier: Apache-2.0 */

/* Calls that came as something else than gRPC: the same interceptors and handlers. */

#include "t.h"

#include "grpc/world.h"

static struct world w;

/* ---- handlers and an interceptor, all on the one loop ---- */

static char heard[256]; /* what they noted */
static struct grpc_call *kept;

static void note(const char *what, peg_str text)
{
    const size_t len = strlen(heard);

    snprintf(heard + len, sizeof(heard) - len, "%s%.*s ", what, PEG_ARG(text));
}

static void unary(struct grpc_call *call, const void *message, void *user)
{
    const peg_str text = *(const peg_str *)message;

    (void)user;
    note("asked:", text);
    if (peg__str_is(text, "keep"))
        kept = grpc_call_ref(call);
    else if (peg__str_is(text, "fail"))
        grpc_call_fail(call, GRPC_ABORTED, "no");
    else
        grpc_call_reply(call, text);
}

static void repeat(struct grpc_call *call, const void *message, void *user)
{
    const struct grpc_status ok = {.code = GRPC_OK};

    (void)user;
    while (grpc_call_is_writable(call))
        (void)grpc_call_send(call, *(const peg_str *)message, NULL);
    grpc_call_finish(call, &ok);
}

static void on_end(struct grpc_call *call, void *user)
{
    (void)user;
    note("ended:", peg__str(grpc_code_name(grpc_call_ended_as(call)->code)));
}

static void take_chat(struct grpc_call *call, const void *message, void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

static const struct grpc_handler handlers[N_METHODS] = {
    [UNARY] = {.on_message = unary, .on_end = on_end},
    [REPEAT] = {.on_message = repeat, .on_end = on_end},
    [CHAT] = {.on_message = take_chat},
};

static void intercept(struct grpc_call *call, void *user)
{
    const peg_str word = grpc_metadata_get(grpc_call_metadata(call), "x-word");

    (void)user;
    note("from:", peg__str(grpc_call_peer(call)));
    (void)grpc_call_add_header(call, peg__str("x-header"), peg__str("h"), NULL);
    if (peg__str_is(word, "secret"))
        grpc_call_authenticate(call, word);
    else if (word.len)
        grpc_call_fail(call, GRPC_UNAUTHENTICATED, "who?");
}

/* ---- a bridge that notes what it is given ---- */

static unsigned n_room; /* messages that it takes */
static char told[128];  /* the words of the status */

static peg_status take_sent(struct grpc_call *call, peg_str message, void *user)
{
    (void)call;
    (void)user;
    n_room--;
    note("sent:", message);
    return peg__str_is(message, "large") ? PEG_ELIMIT : PEG_OK;
}

static peg_status take_message(struct grpc_call *call, const struct ProtobufCMessage *message,
                               void *user)
{
    (void)call;
    (void)message;
    (void)user;
    return PEG_OK;
}

static bool has_room(void *user)
{
    (void)user;
    return n_room > 0;
}

static void finish(struct grpc_call *call, const struct grpc_status *status, void *user)
{
    (void)user;
    snprintf(told, sizeof(told), "%.*s", PEG_ARG(status->message));
    note(grpc_metadata_get(grpc_bridge_headers(call), "x-header").len ? "finished+:" : "finished:",
         peg__str(grpc_code_name(status->code)));
}

static void authenticate(peg_str principal, void *user)
{
    (void)user;
    note("known:", principal);
}

static const struct grpc_bridge_ops ops = {.send = take_sent,
                                           .send_message = take_message,
                                           .is_writable = has_room,
                                           .finish = finish,
                                           .authenticate = authenticate};
static const struct grpc_bridge bridge = {.ops = &ops, .peer = "elsewhere", .is_local = true};

/* ---- what is done on the loop ---- */

struct errand {
    struct net_message message; /* the first member */
    const char *path;
    peg_str text;
    const char *word;
    bool is_lost;
    unsigned fails_at; /* an allocation of the loop; 0: none */
    peg_status status;
    sem_t done;
};

static void run_errand(struct net_message *message)
{
    struct errand *errand = (struct errand *)message;
    struct grpc_call *call = NULL;

    errand->status =
        grpc_bridge_open(w.server, net_loops_at(w.loops, 0), errand->path, &bridge, &call, NULL);
    if (!errand->status) {
        if (errand->word)
            (void)grpc_bridge_add_metadata(call, peg__str("x-word"), peg__str(errand->word));
        /* The messages of this service are bytes. */
        grpc_bridge_start(call, (const struct ProtobufCMessage *)(const void *)&errand->text);
        grpc_bridge_writable(call);
        grpc_bridge_end(call, errand->is_lost);
    }
    peg__mem_fail_at(0);
    if (kept) {
        note(grpc_call_send(kept, peg__str("x"), NULL) == PEG_ECANCELED ? "late" : "sent late",
             peg__str(grpc_call_peer(kept)));
        kept = grpc_call_unref(kept);
    }
    sem_post(&errand->done);
}

static void start_world(void)
{
    const struct grpc_interceptor interceptor = {.on_start = intercept};
    const struct grpc_server_options options = {.interceptors = &interceptor, .n_interceptors = 1};

    heard[0] = '\0';
    n_room = 3;
    world_start(&w, &(struct world_setup){.server = &options, .handlers = handlers, .n_loops = 1});
}

static peg_status call_by_bridge(struct errand *errand)
{
    start_world();
    errand->message.fn = run_errand;
    sem_init(&errand->done, 0, 0);
    net_loop_post(net_loops_at(w.loops, 0), &errand->message);
    sem_wait(&errand->done);
    sem_destroy(&errand->done);
    world_stop(&w);
    return errand->status;
}

/* ---- tests ---- */

TEST(bridge_runs_the_interceptors_and_the_handler)
{
    struct errand errand = {.path = "/test.World/Unary", .text = PEG_LIT("hello")};

    CHECK_INT(call_by_bridge(&errand), PEG_OK);

    CHECK_STR(peg__str(heard), "from:elsewhere asked:hello sent:hello finished+:OK ended:OK ");
}

TEST(bridge_gets_what_a_call_fails_with)
{
    struct errand errand = {.path = "/test.World/Unary", .text = PEG_LIT("fail")};

    CHECK_INT(call_by_bridge(&errand), PEG_OK);

    CHECK_STR(peg__str(heard), "from:elsewhere asked:fail finished+:ABORTED ended:ABORTED ");
}

TEST(bridge_that_cannot_take_an_answer_is_told_why_the_call_fails)
{
    struct errand errand = {.path = "/test.World/Unary", .text = PEG_LIT("large")};

    CHECK_INT(call_by_bridge(&errand), PEG_OK);

    CHECK_STR(peg__str(heard), "from:elsewhere asked:large sent:large "
                               "finished+:RESOURCE_EXHAUSTED ended:RESOURCE_EXHAUSTED ");
    CHECK_STR(peg__str(told), "the answer cannot be sent: the answer is too large, or the gateway "
                              "is out of memory");
}

TEST(bridge_hands_metadata_and_the_principal_on)
{
    struct errand errand = {.path = "/test.World/Unary", .text = PEG_LIT("a"), .word = "secret"};

    CHECK_INT(call_by_bridge(&errand), PEG_OK);

    CHECK_STR(peg__str(heard), "from:elsewhere known:secret asked:a sent:a finished+:OK ended:OK ");
}

TEST(bridge_call_that_an_interceptor_rejects_reaches_no_handler)
{
    struct errand errand = {.path = "/test.World/Unary", .text = PEG_LIT("a"), .word = "wrong"};

    CHECK_INT(call_by_bridge(&errand), PEG_OK);

    CHECK_STR(peg__str(heard), "from:elsewhere finished+:UNAUTHENTICATED ");
}

TEST(bridge_that_takes_no_more_holds_a_stream_up)
{
    struct errand errand = {.path = "/test.World/Repeat", .text = PEG_LIT("r")};

    CHECK_INT(call_by_bridge(&errand), PEG_OK);

    CHECK_STR(peg__str(heard), "from:elsewhere sent:r sent:r sent:r finished+:OK ended:OK ");
}

TEST(bridge_call_that_is_lost_ends_as_with_a_broken_connection_and_may_be_kept)
{
    struct errand errand = {.path = "/test.World/Unary", .text = PEG_LIT("keep"), .is_lost = true};

    CHECK_INT(call_by_bridge(&errand), PEG_OK);

    CHECK_STR(peg__str(heard), "from:elsewhere asked:keep ended:UNAVAILABLE late ");
}

TEST(bridge_refuses_methods_that_are_not_there_or_whose_client_streams)
{
    struct errand nowhere = {.path = "/test.World/Nothing"};
    struct errand chat = {.path = "/test.World/Chat"};
    struct errand none = {.path = "/test.World/None"};

    CHECK_INT(call_by_bridge(&nowhere), PEG_ENOTFOUND);
    CHECK_INT(call_by_bridge(&chat), PEG_ENOTFOUND);
    CHECK_INT(call_by_bridge(&none), PEG_ENOTFOUND);
    CHECK_STR(peg__str(heard), "");
}

TEST(bridge_and_a_client_of_grpc_reach_the_same_handler)
{
    start_world();

    CHECK_STR(peg__str(world_call(&w, UNARY, "hello", NULL)->log), "headers message:hello end:OK ");
    world_stop(&w);
    CHECK(strstr(heard, "asked:hello") != NULL);
}

/* The loop's thread has no memory from the n-th allocation on. */
TEST(bridge_survives_any_allocation_failure)
{
    bool is_done = false;

    for (unsigned nth = 1; nth < 100 && !is_done; nth++) {
        struct errand errand = {
            .path = "/test.World/Unary", .text = PEG_LIT("m"), .word = "secret", .fails_at = nth};
        const peg_status status = call_by_bridge(&errand);

        CHECK(status == PEG_OK || status == PEG_ENOMEM);
        is_done = strstr(heard, "finished+:OK ended:OK") != NULL;
    }
    CHECK(is_done);
}
