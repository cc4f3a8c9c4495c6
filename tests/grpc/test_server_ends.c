/* SPDX-License-Identifier: Apache-2.0 */

/* How calls of a server end: the words that are said. */

#include "t.h"

#include "grpc/world.h"

static struct world w;

/* ---- handlers: their text says what they shall do ---------------------------------------------
 */

static void unary(struct grpc_call *call, const void *message, void *user)
{
    const peg_str text = *(const peg_str *)message;

    (void)user;
    if (peg__str_is(text, "nothing"))
        grpc_call_fail(call, GRPC_NOT_FOUND, "not found: %s", "");
    else if (peg__str_is(text, "spaces"))
        grpc_call_fail(call, GRPC_NOT_FOUND, "  all around  ");
    else
        grpc_call_reply(call, text);
}

static const struct grpc_handler handlers[N_METHODS] = {[UNARY] = {.on_message = unary}};

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
