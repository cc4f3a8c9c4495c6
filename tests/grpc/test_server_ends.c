/* SPDX-License-Identifier: Apache-2.0 */

/* How calls of a server end: the words that are said. */

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

static void unary(struct grpc_call *call, const void *message, void *user)
{
    const peg_str text = *(const peg_str *)message;
    const struct grpc_status too_long = {.code = GRPC_ABORTED, .message = {long_words, LONG}};

    (void)user;
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
}

static void on_end(struct grpc_call *call, void *user)
{
    (void)user;
    ended_len = grpc_call_ended_as(call)->message.len;
}

static const struct grpc_handler handlers[N_METHODS] = {
    [UNARY] = {.on_message = unary, .on_end = on_end}};

static void start(void)
{
    const struct world_setup setup = {.handlers = handlers, .n_loops = 1};

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
