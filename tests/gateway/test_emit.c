/* SPDX-License-Identifier: Apache-2.0 */

/* Results by EmitToolResult, on one loop: who sends one hears of his own. */

#include "../t.h"

#include "base/text/str.h"

#include "calls_world.h"

static const struct calls_options DEFAULTS;

struct emitter {
    struct calls_emission emit; /* the first member */
    unsigned n_answers;
    enum calls_error error;
    char packed[64];
};

static void on_answer(struct calls_emission *emit, enum calls_error error, const char *words)
{
    struct emitter *emitter = (struct emitter *)emit;

    (void)words;
    emitter->n_answers++;
    emitter->error = error;
}

static void emit(struct world *world, struct emitter *emitter, const struct handed *handed,
                 uint32_t attempt, const char *json)
{
    const peg_str text = peg__str(json);
    const size_t len = (size_t)(wire_put_bytes(emitter->packed, 2, text) - emitter->packed);
    const struct calls_emitted emitted = {
        .id = &handed->id,
        .attempt = attempt,
        .principal = peg_cstr("local"),
        .response = peg__strn(emitter->packed, len),
        .result = peg__strn(emitter->packed + len - text.len, text.len),
    };

    emitter->n_answers = 0;
    emitter->emit.fn = on_answer;
    calls_emit(world->calls, &emitted, &emitter->emit);
}

static void open_with_call(struct world *world, struct player *player, struct caller *caller)
{
    world_open(world, &DEFAULTS);
    attach(world, player, "incarnation-1", 4);
    call_as(world, caller, "add", "", 0);
    CHECK_INT(player->n_handed, 1);
}

static void check_heard(const struct emitter *emitter, enum calls_error error)
{
    CHECK_INT(emitter->n_answers, 1);
    CHECK_INT(emitter->error, error);
}

/* With the attempt, and without: both mean the one that runs. */
TEST(of_two_results_at_once_the_first_is_taken_and_the_second_hears_that_it_is_late)
{
    for (uint32_t attempt = 0; attempt <= 1; attempt++) {
        struct emitter first;
        struct emitter second;
        struct world world;
        struct player player;
        struct caller caller;

        open_with_call(&world, &player, &caller);
        emit(&world, &first, &player.handed[0], attempt, "41");
        emit(&world, &second, &player.handed[0], attempt, "42");
        settle(&world);
        check_heard(&first, CALLS_OK);
        check_heard(&second, CALLS_NOT_FOUND);
        CHECK_STR(peg_cstr(caller.result), "41");
        world_close(&world);
    }
}
