/* SPDX-License-Identifier: Apache-2.0 */

/* A result on a loop whose memory ends at any point of reading it. Of one that does not fit its
 * schema its caller hears what is wrong with it, or that there is no memory, and nothing else; of a
 * good one never that it is bad. */

#include "../t.h"

#include <time.h>

#include "base/limits.h"
#include "base/text/str.h"
#include "gateway/rpc/attached.h"

#include "calls_world.h"

static const struct calls_options DEFAULTS;
static const char WORDS[] = "malformed_result: result validation failed: "
                            "must be an integer, but is a string: \"xxxx";
static const char OTHERS[] = "what somebody else was told last";

enum { LARGE = PEG_LIMIT_GATEWAY_INLINE_BYTES + 1000 };

struct trial {
    size_t n_bytes;    /* of the result */
    bool is_forgotten; /* the compiled schema: it is to be compiled again */
    bool is_for_good;  /* memory does not come back before the loop is done with it */
    unsigned n_allocations;
};

struct verdict {
    bool is_untold; /* left to the deadline of the call */
    bool is_about_memory;
    bool is_about_result;
};

/* Back when the provider may forget it: a worker may have to read it. */
static void await_ack(struct world *world, const struct player *player)
{
    const struct timespec pause = {.tv_nsec = 1000000};

    for (unsigned i = 0; i < 20000 && !player->n_acks; i++) {
        settle(world);
        nanosleep(&pause, NULL);
    }
    CHECK_INT(player->n_acks, 1);
    settle(world);
}

static void answer_without_memory(struct world *world, struct player *player,
                                  const struct trial *trial, unsigned nth)
{
    const struct handed *handed = &player->handed[0];
    char text[LARGE];
    char packed[LARGE + 16];
    size_t len;

    memset(text, 'x', trial->n_bytes);
    text[0] = text[trial->n_bytes - 1] = '"';
    len = (size_t)(wire_put_bytes(packed, 2, peg__strn(text, trial->n_bytes)) - packed);
    peg__buf_clear(&world->calls->text);
    peg__buf_puts(&world->calls->text, OTHERS);
    if (trial->is_forgotten)
        gw_schema_set_budget(1);
    if (trial->is_for_good)
        peg__mem_fail_at(nth);
    else
        peg__mem_fail_once(nth);
    CHECK(calls_provider_result(player->provider, &handed->id, handed->attempt,
                                peg__strn(packed, len),
                                peg__strn(packed + len - trial->n_bytes, trial->n_bytes), false));
    peg__mem_fail_at(0);
    gw_schema_set_budget(0);
    await_ack(world, player);
}

static struct verdict judge(const struct caller *caller)
{
    struct verdict verdict = {.is_untold = caller->n_ends == 0};

    if (verdict.is_untold)
        return verdict;
    CHECK_INT(caller->n_ends, 1);
    CHECK_STR(peg_cstr(caller->result), "");
    CHECK(caller->was_started);
    if (caller->error == CALLS_OK) {
        CHECK_INT(caller->outcome, CALLS_KIND_ERROR);
        CHECK_STR(peg__strn(caller->failure, sizeof(WORDS) - 1), WORDS);
        verdict.is_about_result = true;
    } else {
        CHECK_INT(caller->outcome, CALLS_KIND_UNKNOWN);
        CHECK_INT(caller->error, CALLS_OUTCOME_UNKNOWN);
        CHECK(strstr(caller->message, "no memory") != NULL);
        CHECK(!strstr(caller->message, OTHERS));
        verdict.is_about_memory = true;
    }
    return verdict;
}

static struct verdict try_once(const struct trial *trial, unsigned nth)
{
    struct world world;
    struct player player;
    struct caller caller;
    struct verdict verdict;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &caller, "add", "", 0);
    CHECK_INT(player.n_handed, 1);
    answer_without_memory(&world, &player, trial, nth);
    verdict = judge(&caller);
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    world_close(&world);
    return verdict;
}

static void try_all(const struct trial *trial)
{
    struct verdict verdict = {0};
    unsigned n_untold = 0;
    unsigned n_about_memory = 0;

    for (unsigned nth = 1; nth <= trial->n_allocations; nth++) {
        verdict = try_once(trial, nth);
        n_untold += verdict.is_untold;
        n_about_memory += verdict.is_about_memory;
    }
    CHECK(verdict.is_about_result); /* there was memory for all of it */
    CHECK(trial->is_for_good ? n_untold > 0 : n_about_memory > 0);
}

TEST(a_result_is_not_good_for_want_of_memory)
{
    try_all(&(struct trial){.n_bytes = 7, .n_allocations = 30});
    try_all(&(struct trial){.n_bytes = 7, .is_for_good = true, .n_allocations = 30});
}

TEST(a_large_result_is_not_good_for_want_of_memory)
{
    try_all(&(struct trial){.n_bytes = LARGE, .n_allocations = 30});
    try_all(&(struct trial){.n_bytes = LARGE, .is_for_good = true, .n_allocations = 30});
}

TEST(a_result_is_not_good_because_its_schema_cannot_be_compiled_again)
{
    try_all(&(struct trial){.n_bytes = 7, .is_forgotten = true, .n_allocations = 200});
}

/* ---- good ones, as they come on a stream ------------------------------------------------------
 */

struct good {
    size_t n_chunks;
    size_t n_bytes; /* of each */
};

/* More than a document that was read before has room for. */
enum { LIST = 8001 };

static size_t make_list(char list[LIST])
{
    for (size_t i = 0; i < LIST; i += 2) {
        list[i] = i ? ',' : '[';
        list[i + 1 < LIST ? i + 1 : i] = i + 1 < LIST ? '1' : ']';
    }
    return LIST;
}

/* A number, and much space before it. */
static void say_chunk(struct gw_attached *attached, const struct handed *handed,
                      const struct good *good, size_t i)
{
    Pegboard__V1__Result result = PEGBOARD__V1__RESULT__INIT;
    Pegboard__V1__ServerData data = PEGBOARD__V1__SERVER_DATA__INIT;
    Pegboard__V1__ServerData *all[] = {&data};
    char chunk[LARGE];
    char list[LIST];
    char id[BUS_ID_TEXT];

    memset(chunk, ' ', good->n_bytes);
    bus_id_print(&handed->id, id);
    result.call_id = id;
    result.attempt = handed->attempt;
    result.chunk = (ProtobufCBinaryData){good->n_bytes, (uint8_t *)chunk};
    result.more = i + 1 < good->n_chunks;
    if (!result.more) {
        chunk[good->n_bytes - 1] = '1';
        data.kind = (char *)peg__unconst("trace");
        data.data = (ProtobufCBinaryData){make_list(list), (uint8_t *)list};
        result.server_data = all;
        result.n_server_data = 1;
    }
    gw_attached_result(attached, &result);
}

static void say_without_memory(struct world *world, struct player *player, const struct good *good,
                               unsigned nth)
{
    struct gw_attached attached = {
        .calls = world->calls,
        .provider = player->provider,
        .response = PEG__BUF(PEG_LIMIT_GATEWAY_RESULT_BYTES),
    };
    const struct handed *handed = &player->handed[0];

    calls_table_init(&attached.assembling);
    peg__mem_fail_once(nth);
    for (size_t i = 0; i < good->n_chunks; i++)
        if (calls_provider_has(player->provider, &handed->id, handed->attempt))
            say_chunk(&attached, handed, good, i);
    peg__mem_fail_at(0);
    await_ack(world, player);
    gw_attached_free_assemblies(&attached);
    peg__buf_free(&attached.response);
}

/* Was there memory for it? It may be left to the deadline of the call, as above. */
static bool try_good(const struct good *good, unsigned nth)
{
    struct world world;
    struct player player;
    struct caller caller;
    bool is_read;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &caller, "add", "", 0);
    say_without_memory(&world, &player, good, nth);
    is_read = caller.n_ends == 1 && caller.outcome == CALLS_KIND_RESULT;
    CHECK_STR(peg_cstr(caller.failure), "");
    if (caller.n_ends && !is_read) {
        CHECK_INT(caller.error, CALLS_OUTCOME_UNKNOWN);
        CHECK(caller.was_started);
        CHECK(strstr(caller.message, "no memory") != NULL);
    }
    calls_caller_leave(&caller.caller, CALLS_LEAVES);
    world_close(&world);
    return is_read;
}

static void try_good_ones(const struct good *good)
{
    unsigned n_unread = 0;
    bool was_read = false;

    for (unsigned nth = 1; nth <= 30; nth++) {
        was_read = try_good(good, nth);
        n_unread += !was_read;
    }
    CHECK(was_read);
    CHECK(n_unread > 0);
}

TEST(a_good_result_is_not_bad_for_want_of_memory)
{
    try_good_ones(&(struct good){.n_chunks = 1, .n_bytes = 7});
    try_good_ones(&(struct good){.n_chunks = 3, .n_bytes = 7});
    try_good_ones(&(struct good){.n_chunks = 3, .n_bytes = LARGE});
}
