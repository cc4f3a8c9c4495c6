/* SPDX-License-Identifier: Apache-2.0 */

/* What a loop does when there is no room for the registers of a call, or for its request. */

#include "../t.h"

#include "calls_world.h"

static const struct calls_options DEFAULTS;

/* ---- a bus that is full ---------------------------------------------------------------------- */

/* What others keep: registers of calls with an identity (ids of 32 bytes), or without. */
struct others {
    struct world *world;
    uint8_t id_len;
    unsigned n;
};

struct written {
    struct bus_wait wait; /* the first member */
    peg_status status;
};

static void on_written(struct bus_wait *wait, const struct bus_answer *answer)
{
    ((struct written *)wait)->status = answer->status;
}

static struct bus_key key_of_other(const struct others *others, unsigned number, char what)
{
    struct bus_key key = {
        .id = {.len = others->id_len}, .what = what, .admits = what == BUS_IDENTITY};

    memcpy(key.id.bytes, &number, sizeof(number));
    return key;
}

/* They share one value, which counts each time. */
static void keep_values(struct others *others, char what, size_t len)
{
    struct peg__blob *value = peg__blob_new(len);
    struct written written = {.wait.fn = on_written};

    memset(value->bytes, 'x', len);
    do {
        const struct bus_key key = key_of_other(others, others->n++, what);

        bus_put_if_absent(others->world->bus, &key, value, INT64_MAX, &written.wait);
    } while (!written.status);
    CHECK(written.status == PEG_ELIMIT);
    peg__blob_unref(value);
}

/* So that not even the smallest has room. */
static void keep_small(struct others *others, char what)
{
    static const size_t lens[] = {PEG_LIMIT_BUS_SMALL_BYTES, 1024, 64, 0};

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
        keep_values(others, what, lens[i]);
}

static void keep_large(struct others *others)
{
    keep_values(others, BUS_RESULT, PEG_LIMIT_GATEWAY_RESULT_BYTES);
    keep_values(others, BUS_RESULT, PEG_LIMIT_BUS_SMALL_BYTES + 1);
}

static void forget_all(struct others *others)
{
    while (others->n > 0) {
        const struct bus_key key = key_of_other(others, --others->n, BUS_RESULT);

        bus_forget(others->world->bus, &key, 0);
    }
}

/* Fills everything but room for one small value: it has what is forgotten with the key. */
static struct bus_key keep_all_but_one(struct others *others)
{
    const struct bus_key key = key_of_other(others, UINT_MAX, BUS_RESULT);
    struct peg__blob *value = peg__blob_new(1024);
    struct written written = {.wait.fn = on_written};

    memset(value->bytes, 'x', value->len);
    bus_put_if_absent(others->world->bus, &key, value, INT64_MAX, &written.wait);
    CHECK(!written.status);
    peg__blob_unref(value);
    keep_small(others, BUS_RESULT);
    return key;
}

/* ---- large ends ------------------------------------------------------------------------------ */

enum { LARGE = 20000, MEDIUM = 6000 };

/* A string of so many characters. */
static void answer_long(struct player *player, const struct handed *handed, size_t n)
{
    static char text[LARGE];
    static char packed[LARGE + 32];
    size_t len;

    memset(text, 'x', n);
    text[0] = '"';
    text[n - 1] = '"';
    len = (size_t)(wire_put_bytes(packed, 2, (peg_str){text, n}) - packed);
    CHECK(calls_provider_result(player->provider, &handed->id, handed->attempt,
                                (peg_str){packed, len}, (peg_str){packed + len - n, n}, false));
}

static void answer_large(struct player *player, const struct handed *handed)
{
    answer_long(player, handed, LARGE);
}

static void open_for_large(struct world *world, struct player *player)
{
    world_open(world, &DEFAULTS);
    publish(world, make_toolset_with("local", "", "{\"type\":\"string\"}"));
    attach(world, player, "incarnation-1", 4);
}

TEST(a_result_without_room_is_told_and_one_that_asks_later_hears_that_it_ended)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 32};
    struct player player;
    struct caller first;
    struct caller second;
    struct caller late;

    open_for_large(&world, &player);
    call_as(&world, &first, "add", "key-1", 0);
    call_as(&world, &second, "add", "key-1", 0);
    keep_large(&others);
    answer_large(&player, &player.handed[0]);
    await_end(&world, &first);
    await_end(&world, &second);
    CHECK(first.outcome == CALLS_KIND_RESULT && first.result[0] == '"');
    CHECK(second.outcome == CALLS_KIND_RESULT && second.is_follower);
    CHECK(player.n_acks == 1);

    call_as(&world, &late, "add", "key-1", 0);
    CHECK(late.n_ends == 1 && late.is_follower);
    CHECK(late.error == CALLS_OUTCOME_UNKNOWN && late.was_started);
    CHECK(strstr(late.message, "PEG_LIMIT_BUS_LARGE_BYTES"));
    CHECK(!strstr(late.message, "PEG_LIMIT_QUOTA_SHARE"));
    CHECK(player.n_handed == 1);
    world_close(&world);
}

TEST(a_result_of_a_principal_with_a_share_may_have_met_that)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 32};
    struct player player;
    struct caller caller;
    struct caller late;

    open_for_large(&world, &player);
    call_as(&world, &caller, "add", "key-1", 0);
    calls_assignment_find(world.calls, &player.handed[0].id, 1)->account = 1;
    keep_large(&others);
    answer_large(&player, &player.handed[0]);
    await_end(&world, &caller);

    call_as(&world, &late, "add", "key-1", 0);
    CHECK(late.error == CALLS_OUTCOME_UNKNOWN && late.was_started);
    CHECK(strstr(late.message, "PEG_LIMIT_BUS_LARGE_BYTES or this principal's share of it "
                               "(PEG_LIMIT_QUOTA_SHARE) was reached"));
    world_close(&world);
}

/* No worker has to read it: what stands for it is written at once, and the messages with it are on
 * their way. */
static void answer_without_room(struct world *world, struct player *player,
                                const struct bus_key *spare)
{
    bus_forget(world->bus, spare, 0);
    answer_long(player, &player->handed[0], MEDIUM);
}

TEST(a_recheck_before_the_message_comes_still_reports_the_result)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 32};
    struct player player;
    struct caller first;
    struct caller second;
    struct bus_key spare;

    open_for_large(&world, &player);
    call_as(&world, &first, "add", "key-1", 0);
    call_as(&world, &second, "add", "key-1", 0);
    spare = keep_all_but_one(&others);
    answer_without_room(&world, &player, &spare);
    look_at_all(&world);
    CHECK(first.n_ends == 0 && second.n_ends == 0);

    settle(&world);
    CHECK(first.n_ends == 1 && first.outcome == CALLS_KIND_RESULT);
    CHECK(second.n_ends == 1 && second.outcome == CALLS_KIND_RESULT && second.is_follower);
    world_close(&world);
}

/* As its provider side would, which is lost before it sends the messages. */
static void write_placeholder(struct world *world, const struct bus_id *id)
{
    const struct calls_outcome outcome = {
        .kind = CALLS_KIND_UNKNOWN,
        .error = CALLS_OUTCOME_UNKNOWN,
        .message = peg_cstr("it was not kept"),
        .was_started = true,
        .is_placeholder = true,
    };
    const struct bus_key key = {.id = *id, .what = BUS_RESULT};
    struct peg__blob *blob = calls_outcome_write(&outcome);
    struct written written = {.wait.fn = on_written};

    bus_put_if_absent(world->bus, &key, blob, INT64_MAX, &written.wait);
    CHECK(!written.status);
    peg__blob_unref(blob);
}

TEST(a_caller_whose_message_is_lost_learns_that_the_call_ended)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;

    open_for_large(&world, &player);
    call_as(&world, &first, "add", "key-1", 0);
    call_as(&world, &second, "add", "key-1", 0);
    write_placeholder(&world, &player.handed[0].id);
    look_at_all(&world); /* what is asked here is answered at once; the loop might look again */
    CHECK(first.n_ends == 0 && second.n_ends == 0);

    await_end(&world, &first);
    await_end(&world, &second);
    CHECK(first.error == CALLS_OUTCOME_UNKNOWN && first.was_started);
    CHECK(second.error == CALLS_OUTCOME_UNKNOWN && second.was_started);
    world_close(&world);
}

TEST(a_result_that_has_room_again_is_kept)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 32};
    struct player player;
    struct caller first;
    struct caller late;

    open_for_large(&world, &player);
    call_as(&world, &first, "add", "key-1", 0);
    keep_large(&others);
    forget_all(&others);
    answer_large(&player, &player.handed[0]);
    await_end(&world, &first);

    call_as(&world, &late, "add", "key-1", 0);
    CHECK(late.outcome == CALLS_KIND_RESULT && late.result[0] == '"');
    CHECK(player.n_handed == 1);
    world_close(&world);
}

/* Its coordinator is told, and what it leaves is forgotten as ever. */
TEST(a_large_result_of_a_call_without_identity_needs_no_room)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 16};
    struct player player;
    struct caller caller;

    open_for_large(&world, &player);
    call_as(&world, &caller, "add", "", 0);
    keep_large(&others);
    answer_large(&player, &player.handed[0]);
    await_end(&world, &caller);
    CHECK(caller.outcome == CALLS_KIND_RESULT && caller.result[0] == '"');
    world_close(&world);
}

/* ---- no room for anything -------------------------------------------------------------------- */

TEST(a_call_that_ended_is_followed_without_room)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 32};
    struct player player;
    struct caller first;
    struct caller late;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &first, "add", "key-1", 0);
    answer(&world, &player, &player.handed[0], "1");
    keep_small(&others, BUS_RESULT);

    call_as(&world, &late, "add", "key-1", 0);
    CHECK(late.n_ends == 1 && late.is_follower);
    CHECK(late.outcome == CALLS_KIND_RESULT && strcmp(late.result, "1") == 0);
    CHECK(player.n_handed == 1);
    world_close(&world);
}

TEST(a_call_that_runs_is_followed_as_soon_as_there_is_room)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 32};
    struct player player;
    struct caller first;
    struct caller second;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 4);
    call_as(&world, &first, "add", "key-1", 0);
    keep_small(&others, BUS_RESULT);
    call_as(&world, &second, "add", "key-1", 0);
    CHECK(second.n_ends == 0);
    forget_all(&others);
    answer(&world, &player, &player.handed[0], "1");

    await_end(&world, &second);
    CHECK(second.outcome == CALLS_KIND_RESULT && strcmp(second.result, "1") == 0);
    CHECK(player.n_handed == 1);
    world_close(&world);
}

TEST(an_unlisted_recheck_before_the_message_comes_still_reports_the_result)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 32};
    struct player player;
    struct caller first;
    struct caller second;
    struct bus_key spare;

    open_for_large(&world, &player);
    call_as(&world, &first, "add", "key-1", 0);
    spare = keep_all_but_one(&others);
    call_as(&world, &second, "add", "key-1", 0);
    answer_without_room(&world, &player, &spare);
    keep_small(&others, 't'); /* still none to be reported */
    look_at_all(&world);
    CHECK(first.n_ends == 0 && second.n_ends == 0);

    settle(&world);
    CHECK(first.n_ends == 1 && first.outcome == CALLS_KIND_RESULT);
    CHECK(second.n_ends == 1 && second.outcome == CALLS_KIND_RESULT);
    world_close(&world);
}

TEST(a_new_identity_without_room_is_refused_in_words_and_others_go_on)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 32};
    struct player player;
    struct caller running;
    struct caller refused;
    struct caller unnamed;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &unnamed, "add", "", 0);
    call_as(&world, &running, "add", "key-1", 0); /* it waits */
    keep_small(&others, BUS_IDENTITY);
    call_as(&world, &refused, "add", "key-2", 0);
    CHECK(refused.error == CALLS_OVERLOADED && !refused.was_started);
    CHECK(strstr(refused.message, "PEG_LIMIT_BUS_REGISTERS"));
    CHECK(strstr(refused.message, "--result-mapping-ttl"));

    answer(&world, &player, &player.handed[0], "1");
    CHECK(unnamed.outcome == CALLS_KIND_RESULT);
    answer(&world, &player, &player.handed[1], "2"); /* claimed and ended all the same */
    CHECK(running.outcome == CALLS_KIND_RESULT);
    call_as(&world, &running, "add", "key-1", 0);
    CHECK(running.is_follower && strcmp(running.result, "2") == 0);
    CHECK(player.n_handed == 2);
    world_close(&world);
}

TEST(what_is_kept_of_named_calls_refuses_no_other)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 32};
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    keep_large(&others);
    keep_small(&others, BUS_RESULT);
    call_as(&world, &caller, "add", "", 0);
    CHECK(player.n_handed == 1);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(caller.outcome == CALLS_KIND_RESULT);
    world_close(&world);
}

TEST(a_claim_without_room_is_no_full_queue)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 16};
    struct player player;
    struct caller caller;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    keep_small(&others, BUS_RESULT);
    call_as(&world, &caller, "add", "", 0);
    CHECK(caller.error == CALLS_OVERLOADED && !caller.was_started);
    CHECK(strstr(caller.message, "PEG_LIMIT_BUS_REGISTER_BYTES"));
    CHECK(player.n_handed == 0);
    world_close(&world);
}

/* It was admitted, and then what was left for such as it was taken, too. */
TEST(a_named_call_that_cannot_be_claimed_is_taken_back_when_there_is_room)
{
    struct world world;
    struct others others = {.world = &world, .id_len = 32};
    struct player player;
    struct caller first;
    struct caller identity;

    world_open(&world, &DEFAULTS);
    attach(&world, &player, "incarnation-1", 1);
    call_as(&world, &first, "add", "", 0);
    call_as(&world, &identity, "add", "key-1", 0);
    keep_small(&others, BUS_RESULT);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(first.outcome == CALLS_KIND_RESULT);
    CHECK(identity.n_ends == 0 && player.n_handed == 1);
    forget_all(&others);

    await_end(&world, &identity);
    CHECK(identity.error == CALLS_OVERLOADED && !identity.was_started);
    CHECK(strstr(identity.message, "PEG_LIMIT_BUS_REGISTER_BYTES"));
    CHECK(player.n_handed == 1);
    world_close(&world);
}

/* ---- large requests -------------------------------------------------------------------------- */

enum { ROOM = 2 * LARGE + 100 }; /* for two of them */

static void call_large(struct world *world, struct caller *caller, const char *key,
                       int64_t timeout_ms)
{
    static char payload[LARGE + 64];
    struct calls_request request = {
        .toolset = peg_cstr("sums"),
        .tool = peg_cstr("add"),
        .principal = peg_cstr("local"),
        .key = peg_cstr(key),
        .timeout_ms = timeout_ms,
        .deadline_ns = NET_NEVER,
    };

    request.payload.ptr = payload;
    request.payload.len = (size_t)snprintf(payload, sizeof(payload), "{\"n\":1,\"more\":\"%0*d\"}",
                                           LARGE - (int)strlen("{\"n\":1,\"more\":\"\"}"), 7);
    CHECK(request.payload.len == LARGE);
    *caller = (struct caller){.caller.events = &CALLER_EVENTS};
    calls_start(world->calls, &request, &caller->caller);
}

/* A worker reads its payload first. */
static void await_handed(struct world *world, const struct player *player, unsigned n)
{
    for (unsigned i = 0; i < 20000 && player->n_handed < n; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};

        settle(world);
        nanosleep(&pause, NULL);
    }
    CHECK(player->n_handed == n);
}

static void await_attached(struct world *world, const struct caller *caller)
{
    for (unsigned i = 0; i < 20000 && !caller->is_follower; i++) {
        const struct timespec pause = {.tv_nsec = 1000000};

        settle(world);
        nanosleep(&pause, NULL);
    }
    CHECK(caller->is_follower);
}

static void open_with_room(struct world *world, struct player *player, uint32_t credits)
{
    const struct calls_options options = {.max_large_bytes = ROOM, .grace_ms = 1};

    world_open(world, &options);
    attach(world, player, "incarnation-1", credits);
}

TEST(large_requests_are_bounded_and_refuse_no_small_one)
{
    struct world world;
    struct player player;
    struct caller large[3];
    struct caller small;

    open_with_room(&world, &player, 100);
    call_large(&world, &large[0], "", 0);
    call_large(&world, &large[1], "", 0);
    call_large(&world, &large[2], "", 0);
    CHECK(large[2].error == CALLS_OVERLOADED && !large[2].was_started);
    CHECK(strstr(large[2].message, "too many bytes in large payloads"));
    CHECK(large[0].n_ends == 0 && large[1].n_ends == 0);
    call_as(&world, &small, "add", "", 0);
    await_handed(&world, &player, 3);
    CHECK(peg__quota_used(&world.calls->quotas.large_bytes) == (size_t)2 * LARGE);

    for (unsigned i = 0; i < 3; i++)
        answer(&world, &player, &player.handed[i], "1");
    CHECK(small.outcome == CALLS_KIND_RESULT && large[0].outcome == CALLS_KIND_RESULT);
    CHECK(peg__quota_used(&world.calls->quotas.large_bytes) == 0);
    call_large(&world, &large[2], "", 0);
    await_handed(&world, &player, 4);
    world_close(&world);
}

/* Answered, canceled while a worker reads it, canceled in the queue, late, lost with its provider:
 * each gives back what it took. */
TEST(a_large_request_gives_its_room_back_however_its_call_ends)
{
    struct world world;
    struct player player;
    struct caller first;
    struct caller second;

    open_with_room(&world, &player, 1);
    call_large(&world, &first, "", 0);
    calls_caller_leave(&first.caller, CALLS_LEAVES);
    settle(&world);
    CHECK(peg__quota_used(&world.calls->quotas.large_bytes) == 0);

    call_large(&world, &first, "key-1", 0);
    await_handed(&world, &player, 1);
    call_large(&world, &second, "key-1", 0);
    await_attached(&world, &second); /* one more caller of the same call */
    CHECK(peg__quota_used(&world.calls->quotas.large_bytes) == LARGE);
    calls_caller_leave(&second.caller, CALLS_LEAVES);
    settle(&world);
    call_large(&world, &second, "", 1); /* waits until it is late */
    await_end(&world, &second);
    CHECK(second.error == CALLS_TIMEOUT);
    CHECK(peg__quota_used(&world.calls->quotas.large_bytes) == LARGE);
    answer(&world, &player, &player.handed[0], "1");
    CHECK(first.outcome == CALLS_KIND_RESULT &&
          peg__quota_used(&world.calls->quotas.large_bytes) == 0);

    call_large(&world, &first, "", 1); /* runs until it is late */
    await_end(&world, &first);
    CHECK(peg__quota_used(&world.calls->quotas.large_bytes) == 0);
    call_large(&world, &first, "", 0); /* ends with the loop */
    CHECK(peg__quota_used(&world.calls->quotas.large_bytes) == LARGE);
    world_close(&world);
}

TEST(a_large_request_that_is_refused_takes_no_room)
{
    struct world world;
    struct player player;
    struct caller caller;

    open_with_room(&world, &player, 1);
    call_large(&world, &caller, "key-1", 0);
    await_handed(&world, &player, 1);
    answer(&world, &player, &player.handed[0], "1");
    calls_provider_leave(player.provider);
    settle(&world);
    call_large(&world, &caller, "", 0); /* nobody is there */
    await_end(&world, &caller);
    CHECK(caller.error == CALLS_SERVICE_UNAVAILABLE);
    CHECK(peg__quota_used(&world.calls->quotas.large_bytes) == 0);
    world_close(&world);
}
