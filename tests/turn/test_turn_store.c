/* SPDX-License-Identifier: Apache-2.0 */

/* What every store of turns has to do, run against all kinds of them. */

#include "store_world.h"

/* ---- saving and loading ------------------------------------------------------------------ */

STORE_TEST(a_saved_turn_is_loaded_as_it_was)
{
    TURN turn = turn_of_everything("t1");

    save(w, turn);
    check_loads(w, turn);

    world_reopen(w);
    check_loads(w, turn);
}

STORE_TEST(bytes_of_artifacts_come_back_whole)
{
    TURN turn = turn_of_everything("t1");
    peg_str before;
    peg_str after;

    save(w, turn);
    world_reopen(w);

    {
        TURN loaded = load(w, peg_cstr("t1"));
        peg_record *record = peg_turn_result_of(loaded, peg_cstr("c2"));

        CHECK(record);
        CHECK_INT(peg_artifact_bytes(peg_record_artifact(peg_turn_result_of(turn, peg_cstr("c2"))),
                                     &before, NULL),
                  PEG_OK);
        CHECK_INT(peg_artifact_bytes(peg_record_artifact(record), &after, NULL), PEG_OK);
        CHECK_INT(after.len, 300000);
        CHECK(peg__str_eq(before, after));
    }
}

STORE_TEST(a_loaded_turn_can_go_on_and_be_saved_again)
{
    TURN turn = turn_of_everything("t1");

    save(w, turn);
    world_reopen(w);
    {
        TURN loaded = load(w, peg_cstr("t1"));

        say(loaded, "more");
        say(turn, "unsaved");
        save(w, loaded);
        world_reopen(w);
        check_loads(w, loaded);
    }
}

STORE_TEST(a_turn_without_blocks_is_a_turn)
{
    TURN turn = turn_named(peg_cstr("empty"));

    save(w, turn);
    world_reopen(w);

    check_loads(w, turn);
}

STORE_TEST(members_that_nobody_knows_survive)
{
    TURN turn = NULL;
    peg_error error;

    CHECK_STATUS(peg_turn_read(peg_cstr("{\"id\":\"f\",\"future\":{\"x\":[1]},\"blocks\":[{\"id\":"
                                        "\"b\",\"kind\":\"hologram\",\"spin\":7,\"payload\":{"
                                        "\"text\":\"t\"}}]}"),
                               NULL, &turn, &error),
                 PEG_OK, error);

    save(w, turn);
    world_reopen(w);

    check_loads(w, turn);
}

STORE_TEST(nothing_is_loaded_where_nothing_was_saved)
{
    peg_turn *turn = NULL;
    peg_phase phase = PEG_PHASE_FINAL;

    CHECK_INT(peg_turn_store_load(w->store, peg_cstr("nope"), &turn, &phase, NULL), PEG_OK);
    CHECK(!turn);
    CHECK_INT(phase, PEG_PHASE_FINAL);
    CHECK_INT(peg_turn_store_load(w->store, peg_cstr(""), &turn, NULL, NULL), PEG_OK);
    CHECK(!turn);
}

STORE_TEST(saving_replaces_what_was_there_and_its_phase)
{
    TURN turn = turn_saying("t1", "one");
    TURN loaded = NULL;
    peg_phase phase;

    CHECK_INT(peg_turn_store_save(w->store, turn, PEG_PHASE_PRE_CALL, NULL), PEG_OK);
    say(turn, "two");
    CHECK_INT(peg_turn_store_save(w->store, turn, PEG_PHASE_FINAL, NULL), PEG_OK);
    world_reopen(w);

    CHECK_INT(peg_turn_store_load(w->store, peg_cstr("t1"), &loaded, &phase, NULL), PEG_OK);
    CHECK_INT(phase, PEG_PHASE_FINAL);
    check_same(loaded, turn);
}

STORE_TEST(each_phase_comes_back)
{
    TURN turn = turn_saying("t1", "one");

    for (peg_phase phase = 0; phase < PEG_N_PHASES; phase++) {
        TURN loaded = NULL;
        peg_phase found = PEG_N_PHASES;

        CHECK_INT(peg_turn_store_save(w->store, turn, phase, NULL), PEG_OK);
        CHECK_INT(peg_turn_store_load(w->store, peg_cstr("t1"), &loaded, &found, NULL), PEG_OK);
        CHECK_INT(found, phase);
    }
}

STORE_TEST(what_happens_to_a_turn_later_does_not_touch_what_was_saved)
{
    TURN turn = turn_saying("t1", "one");
    TURN as_saved = NULL;

    save(w, turn);
    CHECK_INT(peg_turn_copy(turn, &as_saved, NULL), PEG_OK);
    say(turn, "two");
    {
        TURN loaded = load(w, peg_cstr("t1"));

        say(loaded, "three");
    }

    check_loads(w, as_saved);
}

STORE_TEST(a_turn_without_an_id_is_refused)
{
    TURN turn = turn_named(peg_cstr(""));
    peg_error error;

    CHECK_INT(peg_turn_store_save(w->store, turn, PEG_PHASE_FINAL, &error), PEG_EINVAL);
    CHECK_STR(peg_cstr(error.code), "E_INVALID_ARGUMENT");
}

STORE_TEST(a_phase_that_there_is_not_is_refused)
{
    TURN turn = turn_saying("t1", "one");
    peg_error error;

    CHECK_INT(peg_turn_store_save(w->store, turn, PEG_N_PHASES, &error), PEG_EINVAL);
    CHECK_STR(peg_cstr(error.code), "E_INVALID_ARGUMENT");
}

/* ---- changing -------------------------------------------------------------------------------- */

static unsigned next_random(unsigned *state)
{
    *state = *state * 1664525U + 1013904223U;
    return *state >> 8;
}

static void add_at_random(peg_turn *turn, unsigned *seed, unsigned step)
{
    const size_t n = peg_turn_len(turn);
    peg_block *block = NULL;
    char text[32];

    /* Some texts repeat: two blocks, one content but for the id. */
    snprintf(text, sizeof(text), "step %u", step % 7);
    CHECK_INT(peg_block_new(&(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER,
                                                   .text = peg_cstr(text)},
                            &block, NULL),
              PEG_OK);
    CHECK_INT(peg_turn_insert(turn, next_random(seed) % (n + 1), block, NULL), PEG_OK);
    peg_block_unref(block);
}

static void change_at_random(peg_turn *turn, unsigned *seed, unsigned step)
{
    const size_t n = peg_turn_len(turn);
    peg_block *block;

    switch (n ? next_random(seed) % 4 : 0) {
    case 0:
    case 1:
        add_at_random(turn, seed, step);
        break;
    case 2: /* away, and perhaps back elsewhere */
        block = peg_block_ref(peg_turn_at(turn, next_random(seed) % n));
        CHECK_INT(peg_turn_remove(turn, peg_block_id(block), NULL), PEG_OK);
        if (step % 2)
            CHECK_INT(peg_turn_insert(turn, next_random(seed) % n, block, NULL), PEG_OK);
        peg_block_unref(block);
        break;
    default:
        set_json(turn, step % 2 ? PEG_BAG_DATA : PEG_BAG_METADATA, "test.step@v1",
                 step % 3 ? "1" : "2");
    }
}

STORE_TEST(any_change_of_a_turn_is_saved)
{
    TURN turn = turn_named(peg_cstr("t1"));
    unsigned seed = 20240617;

    for (unsigned step = 0; step < 100; step++) {
        change_at_random(turn, &seed, step);
        save(w, turn);
        if (step % 10 == 0)
            world_reopen(w);
        check_loads(w, turn);
    }
}

STORE_TEST(a_turn_that_got_shorter_is_saved_as_it_is)
{
    TURN turn = turn_named(peg_cstr("t1"));

    for (int i = 0; i < 250; i++)
        say(turn, "x");
    save(w, turn);
    while (peg_turn_len(turn) > 3)
        CHECK_INT(peg_turn_remove(turn, peg_block_id(peg_turn_at(turn, 1)), NULL), PEG_OK);

    save(w, turn);
    world_reopen(w);

    check_loads(w, turn);
}

/* ---- removing -------------------------------------------------------------------------------- */

STORE_TEST(a_removed_turn_is_gone_and_removing_it_again_is_silent)
{
    TURN turn = turn_of_everything("t1");
    peg_error error;

    save(w, turn);
    CHECK_STATUS(peg_turn_store_remove(w->store, peg_cstr("t1"), &error), PEG_OK, error);
    CHECK_STATUS(peg_turn_store_remove(w->store, peg_cstr("t1"), &error), PEG_OK, error);
    CHECK_STATUS(peg_turn_store_remove(w->store, peg_cstr(""), &error), PEG_OK, error);
    world_reopen(w);

    CHECK(!load(w, peg_cstr("t1")));
}

STORE_TEST(turns_that_share_blocks_do_not_share_their_end)
{
    TURN turn = turn_of_everything("t1");
    TURN next = NULL;

    CHECK_INT(peg_turn_follow(turn, peg_cstr("and now?"), &next, NULL), PEG_OK);
    save(w, turn);
    save(w, next);
    CHECK_INT(peg_turn_store_remove(w->store, peg_cstr("t1"), NULL), PEG_OK);
    world_reopen(w);

    check_loads(w, next);
    CHECK(!load(w, peg_cstr("t1")));
}

STORE_TEST(a_removed_turn_can_be_saved_again)
{
    TURN turn = turn_of_everything("t1");

    save(w, turn);
    CHECK_INT(peg_turn_store_remove(w->store, peg_cstr("t1"), NULL), PEG_OK);
    save(w, turn);

    check_loads(w, turn);
    world_reopen(w);
    check_loads(w, turn);
}

/* ---- listing --------------------------------------------------------------------------------- */

struct listing {
    char text[1024];
    size_t max; /* stop after so many; 0: never */
    size_t n;
    struct world *removes; /* removes each turn it hears of */
};

static bool note_listed(const peg_turn_info *info, void *user)
{
    struct listing *listing = user;
    const size_t len = strlen(listing->text);

    snprintf(listing->text + len, sizeof(listing->text) - len, "%.*s/%.*s/%s/%lld/%zu ",
             PEG_ARG(info->id), PEG_ARG(info->session_id), peg_phase_name(info->phase),
             (long long)info->saved_ms, info->n_blocks);
    if (listing->removes)
        CHECK_INT(peg_turn_store_remove(listing->removes->store, info->id, NULL), PEG_OK);
    return ++listing->n != listing->max;
}

static const char *list(struct world *w, const char *session, struct listing *listing)
{
    peg_error error;

    CHECK_STATUS(peg_turn_store_list(w->store, peg_cstr(session), note_listed, listing, &error),
                 PEG_OK, error);
    return listing->text;
}

/* Saves as the loop does, at a time of the test's. */
static void snapshot_at(struct world *w, const peg_turn *turn, peg_phase phase, int64_t now_ms)
{
    peg_clock *clock = NULL;
    peg_ctx *ctx = NULL;
    peg_error error;

    CHECK_INT(peg_clock_manual_new(now_ms, &clock, NULL), PEG_OK);
    CHECK_INT(peg_ctx_with_clock(NULL, clock, &ctx, NULL), PEG_OK);
    CHECK_STATUS(peg_turn_store_snapshot(ctx, turn, phase, w->store, &error), PEG_OK, error);
    peg_ctx_unref(ctx);
    peg_clock_manual_free(clock);
}

static void save_three(struct world *w)
{
    TURN a = turn_saying("a", "x");
    TURN b = turn_saying("b", "x");
    TURN c = turn_saying("c", "x");

    set_session(a, "s1");
    set_session(b, "s2");
    say(b, "y");
    snapshot_at(w, a, PEG_PHASE_FINAL, 1000);
    snapshot_at(w, b, PEG_PHASE_PRE_INFERENCE, 2000);
    snapshot_at(w, c, PEG_PHASE_POST_TOOLS, 3000);
    snapshot_at(w, a, PEG_PHASE_PRE_CALL, 4000);
}

STORE_TEST(a_list_tells_what_each_turn_is_those_saved_last_first)
{
    save_three(w);
    world_reopen(w);

    CHECK_STR(peg_cstr(list(w, "", &(struct listing){0})),
              "a/s1/pre_call/4000/1 c//post_tools/3000/1 b/s2/pre_inference/2000/2 ");
}

STORE_TEST(a_list_of_a_session_has_only_its_turns)
{
    save_three(w);

    CHECK_STR(peg_cstr(list(w, "s2", &(struct listing){0})), "b/s2/pre_inference/2000/2 ");
    CHECK_STR(peg_cstr(list(w, "s", &(struct listing){0})), "");
}

STORE_TEST(a_list_ends_when_nobody_wants_more)
{
    save_three(w);

    CHECK_STR(peg_cstr(list(w, "", &(struct listing){.max = 1})), "a/s1/pre_call/4000/1 ");
}

STORE_TEST(whoever_hears_a_list_may_use_the_store)
{
    struct listing listing = {.removes = w};

    save_three(w);

    list(w, "", &listing);

    CHECK_INT(listing.n, 3);
    CHECK_STR(peg_cstr(list(w, "", &(struct listing){0})), "");
}

/* ---- hostile ids ----------------------------------------------------------------------------- */

static const char *const ids[] = {
    "a",       "A",     "..",      ".",        "...",     "../../etc/passwd",
    "/etc",    "a/b",   "a\\b",    "a b",      "a\nb",    "a%2fb",
    "%2e%2e",  "~",     "con",     "*?",       "a.json",  ".json",
    "a.bytes", ".lock", ".new-00", "\xc3\xa4", "\x01",    "'; DROP TABLE turns; --",
    "--help",  "-rf",   "$(true)", "`true`",   "a.json/", "\xf0\x9f\x8d\x8e",
    "a.",      "a%",    "%",       "null",     "\"",      "{\"id\":1}",
};

enum { N_IDS = sizeof(ids) / sizeof(*ids) };

STORE_TEST(any_id_is_a_name_of_its_own_and_leads_nowhere)
{
    struct listing listing = {0};

    for (size_t i = 0; i < N_IDS; i++) {
        TURN turn = turn_saying(ids[i], ids[i]);

        save(w, turn);
    }
    world_reopen(w);

    for (size_t i = 0; i < N_IDS; i++) {
        TURN loaded = load(w, peg_cstr(ids[i]));

        CHECK(loaded);
        CHECK_STR(peg_block_text(peg_turn_at(loaded, 0)), ids[i]);
        CHECK_STR(peg_turn_id(loaded), ids[i]);
    }
    list(w, "", &listing);
    CHECK_INT(listing.n, N_IDS);
    CHECK_INT(peg_turn_store_remove(w->store, peg_cstr("a"), NULL), PEG_OK);
    CHECK(!load(w, peg_cstr("a")));
    {
        TURN other = load(w, peg_cstr("A"));

        CHECK(other);
    }
}

/* Ids as long as they may be, the same up to their last byte. */
STORE_TEST(long_ids_are_told_apart_to_their_last_byte)
{
    char id[PEG_LIMIT_ID_BYTES];

    memset(id, '/', sizeof(id));
    for (char c = 'a'; c < 'd'; c++) {
        TURN turn = NULL;

        id[sizeof(id) - 1] = c;
        turn = turn_named(peg__strn(id, sizeof(id)));
        say(turn, (const char[]){c, '\0'});
        save(w, turn);
    }
    world_reopen(w);

    for (char c = 'a'; c < 'd'; c++) {
        TURN loaded = NULL;

        id[sizeof(id) - 1] = c;
        loaded = load(w, peg__strn(id, sizeof(id)));
        CHECK(loaded);
        CHECK_STR(peg_block_text(peg_turn_at(loaded, 0)), ((const char[]){c, '\0'}));
    }
}

/* ---- the host's kinds of artifacts ------------------------------------------------------------
 */

STORE_TEST(artifacts_of_the_hosts_kinds_are_read_as_such)
{
    static const peg_artifact_kind log_kind = {.name = "log", .base = &peg_artifact_text};
    static const peg_artifact_kind *const kinds[] = {&log_kind};
    TURN turn = turn_named(peg_cstr("t1"));
    peg_reader *reader = NULL;
    peg_artifact *artifact = NULL;

    CHECK_INT(peg_reader_from_bytes(peg_cstr("line"), &reader, NULL), PEG_OK);
    CHECK_INT(peg_artifact_new(&log_kind, reader, &artifact, NULL), PEG_OK);
    peg_reader_unref(reader);
    add_block(turn, &(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_OTHER,
                                           .id = peg_cstr("log1"), .type = peg_cstr("log"),
                                           .artifact = artifact, .tier = PEG_TIER_FIRST_PARTY});
    peg_artifact_unref(artifact);
    save(w, turn);
    world_reopen(w);
    peg_turn_store_set_kinds(w->store, kinds, 1);

    {
        TURN loaded = load(w, peg_cstr("t1"));

        CHECK(loaded);
        artifact = peg_block_artifact(peg_turn_at(loaded, 0));
        CHECK(artifact);
        CHECK(peg_artifact_kind_of(artifact) == &log_kind);
    }
}
