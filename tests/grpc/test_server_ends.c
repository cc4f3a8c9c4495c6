/* SPDX-License-Identifier: Apache-2.0 */

/* How calls of a server end: the words that are said, and what a handler may do in its on_end. */

#include "t.h"

#include "base/limits.h"
#include "grpc/world.h"

static struct world w;

/* ---- handlers: their text says what they shall do ---------------------------------------------
 */

/* One byte too long, and its last character has two. */
enum { LONG = PEG_LIMIT_GRPC_STATUS_BYTES + 1 };
static char long_words[LONG + 1];
static atomic_size_t ended_len; /* of the words of the last call */
static atomic_uint n_calls;

static void free_neighbour(void);

static void unary(struct grpc_call *call, const void *message, void *user)
{
    const peg_str text = *(const peg_str *)message;
    const struct grpc_status too_long = {.code = GRPC_ABORTED, .message = {long_words, LONG}};

    (void)user;
    n_calls++;
    if (peg__str_is(text, "nothing"))
        grpc_call_fail(call, GRPC_NOT_FOUND, "not found: %s", "");
    else if (peg__str_is(text, "spaces"))
        grpc_call_fail(call, GRPC_NOT_FOUND, "  all around  ");
    else if (peg__str_is(text, "finish"))
        grpc_call_finish(call, &too_long);
    else if (peg__str_is(text, "fail"))
        grpc_call_fail(call, GRPC_ABORTED, "%s", long_words);
    else
        grpc_call_reply(call, text);
    if (peg__str_is(text, "free"))
        grpc_call_set_state(call, call);
}

static void on_end(struct grpc_call *call, void *user)
{
    (void)user;
    ended_len = grpc_call_ended_as(call)->message.len;
    if (grpc_call_state(call))
        free_neighbour();
}

static const struct grpc_handler handlers[N_METHODS] = {
    [UNARY] = {.on_message = unary, .on_end = on_end}};

static void start(void)
{
    const struct world_setup setup = {.handlers = handlers, .n_loops = 1};

    n_calls = 0;
    world_start(&w, &setup);
}

/* ---- words ----------------------------------------------------------------------------------- */

TEST(words_with_spaces_around_them_arrive_as_they_are)
{
    const struct answer *a;

    start();
    a = world_call(&w, UNARY, "nothing", NULL);
    CHECK_INT(a->code, GRPC_NOT_FOUND);
    CHECK_STR(peg__str(a->words), "not found: ");
    a = world_call(&w, UNARY, "spaces", NULL);
    CHECK_INT(a->code, GRPC_NOT_FOUND);
    CHECK_STR(peg__str(a->words), "  all around  ");
    world_stop(&w);
}

TEST(words_that_are_too_long_are_cut_between_characters)
{
    static const char *const ways[] = {"finish", "fail"};

    memset(long_words, 'a', LONG);
    memcpy(long_words + LONG - 2, "\xC3\xA9", 2);
    start();
    for (unsigned i = 0; i < 2; i++) {
        CHECK_INT(world_call(&w, UNARY, ways[i], NULL)->code, GRPC_ABORTED);
        CHECK_INT(ended_len, PEG_LIMIT_GRPC_STATUS_BYTES - 1);
    }
    world_stop(&w);
}

/* ---- what happens while answers are gathered ---------------------------------------------------
 */

/* Another client, on the loop of the server. */
static struct grpc_channel *neighbour;
static sem_t is_ready;

static void neighbour_answered(struct grpc_rpc *rpc, const struct grpc_status *status,
                               const struct grpc_metadata *trailers, void *user)
{
    (void)rpc;
    (void)status;
    (void)trailers;
    (void)user;
    sem_post(&is_ready);
}

static void start_neighbour(struct net_message *message)
{
    static const struct grpc_rpc_events events = {.on_end = neighbour_answered};
    const peg_str text = peg__str("x");

    (void)message;
    if (grpc_channel_new(net_loops_at(w.loops, 0), peg__str(w.address), NULL, &neighbour, NULL) ||
        grpc_rpc_unary(neighbour, &world_methods[UNARY], &text, NULL, &events, NULL, NULL, NULL))
        abort();
}

/* It says goodbye to its server, at once. */
static void free_neighbour(void)
{
    neighbour = grpc_channel_free(neighbour);
}

TEST(a_channel_may_be_freed_while_the_answers_of_others_are_gathered)
{
    enum { N = 8 };
    struct net_message message = {.fn = start_neighbour};

    start();
    sem_init(&is_ready, 0, 0);
    net_loop_post(net_loops_at(w.loops, 0), &message);
    sem_wait(&is_ready);
    CHECK_INT(world_call(&w, UNARY, "x", NULL)->code, GRPC_OK);
    for (unsigned i = 0; i < N; i++) /* they come together, and so do their answers */
        world_ask(&w, UNARY, i == 1 ? "free" : "the text of a neighbour", NULL);
    world_run(&w);

    for (unsigned i = 0; i < N; i++)
        CHECK_STR(peg__str(w.answers[1 + i].log),
                  i == 1 ? "headers message:free end:OK "
                         : "headers message:the text of a neighbour end:OK ");
    CHECK_INT(n_calls, N + 2); /* nobody had to ask again */
    CHECK(!neighbour);
    world_stop(&w);
}
