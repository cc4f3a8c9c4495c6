/* SPDX-License-Identifier: Apache-2.0 */

#include "../t.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "turn/turn.h"

/* ---- fixture: results by key and handle, artifacts of a host -------------------- */

#define TURN PEG_CLEANUP(peg_turn_freep) peg_turn *
#define BLOCK PEG_CLEANUP(peg_block_unrefp) peg_block *

static peg_block *user(const char *id)
{
    peg_block *block = NULL;

    CHECK_INT(peg_block_new(&(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER,
                                                   .id = peg_cstr(id), .text = peg_cstr(id)},
                            &block, NULL),
              PEG_OK);
    return block;
}

static peg_artifact *artifact(void)
{
    peg_artifact *made = NULL;
    peg_reader *reader = NULL;

    CHECK_INT(peg_reader_from_bytes((peg_str)PEG_LIT("bytes"), &reader, NULL), PEG_OK);
    CHECK_INT(peg_artifact_new(NULL, reader, &made, NULL), PEG_OK);
    peg_reader_unref(reader);
    return made;
}

/* A result of a call block: "text" as result, or an artifact. */
struct result {
    const char *id;     /* of the result block */
    const char *key;    /* of the call block */
    const char *handle; /* NULL: the call id, which is "call" */
    const char *args;   /* NULL: {} */
    bool is_artifact;
};

static peg_block *result_of(struct result r)
{
    peg_artifact *kept = r.is_artifact ? artifact() : NULL;
    const peg_record_def def = {PEG_RECORD_DEF_INIT,
                                .key = peg_cstr(r.key),
                                .call_id = PEG_LIT("call"),
                                .handle = peg_cstr(r.handle),
                                .tool = PEG_LIT("look"),
                                .args = peg_cstr(r.args),
                                .text = {kept ? NULL : "done", kept ? 0 : 4},
                                .artifact = kept};
    peg_record *record = NULL;
    peg_block *block = NULL;
    peg_error error;

    CHECK_STATUS(peg_record_new(&def, &record, &error), PEG_OK, error);
    CHECK_STATUS(peg_block_new(&(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_RESULT,
                                                      .id = peg_cstr(r.id), .record = record},
                               &block, &error),
                 PEG_OK, error);
    peg_record_unref(record);
    peg_artifact_unref(kept);
    return block;
}

#define RESULT(...) result_of((struct result){__VA_ARGS__})

static peg_block *retrieved(const char *id)
{
    peg_artifact *kept = artifact();
    const peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_OTHER,
                               .id = peg_cstr(id), .type = PEG_LIT("retrieved"),
                               .artifact = kept,   .tier = PEG_TIER_THIRD_PARTY_PUBLIC};
    peg_block *block = NULL;

    CHECK_INT(peg_block_new(&def, &block, NULL), PEG_OK);
    peg_artifact_unref(kept);
    return block;
}

static peg_turn *turn_new(void)
{
    peg_turn *turn = NULL;

    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    return turn;
}

static peg_turn *copy_of(const peg_turn *turn)
{
    peg_turn *copy = NULL;

    CHECK_INT(peg_turn_copy(turn, &copy, NULL), PEG_OK);
    return copy;
}

/* Adds and gives up the caller's reference. */
static peg_status add(peg_turn *turn, peg_block *block)
{
    const peg_status status = peg_turn_add(turn, block, NULL);

    peg_block_unref(block);
    return status;
}

static peg_status put(peg_turn *turn, peg_block *block)
{
    const peg_status status = peg_turn_put(turn, block, NULL);

    peg_block_unref(block);
    return status;
}

static void check_collision(peg_turn *turn, peg_block *block)
{
    const size_t len = peg_turn_len(turn);
    peg_error error;

    CHECK_INT(peg_turn_add(turn, block, &error), PEG_EEXISTS);
    CHECK_STR(peg__str(error.code), "E_ARTIFACT_ID_COLLISION");
    CHECK_INT(peg_turn_len(turn), len);
    peg_block_unref(block);
}

static peg_turn *turn_of(const char *ids)
{
    peg_turn *turn = turn_new();

    for (; *ids; ids++)
        CHECK_INT(add(turn, user((const char[]){*ids, '\0'})), PEG_OK);
    return turn;
}

/* ---- calls and results ---------------------------------------------------------- */

static peg_status add_call(peg_turn *turn, const char *id)
{
    peg_block *block = NULL;

    CHECK_INT(peg_block_new(&(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_CALL,
                                                   .id = peg_cstr(id), .call_id = PEG_LIT("call"),
                                                   .tool = PEG_LIT("look")},
                            &block, NULL),
              PEG_OK);
    return add(turn, block);
}

TEST(turn_tells_which_calls_have_no_result)
{
    TURN turn = turn_of("u");

    CHECK_INT(add_call(turn, "1"), PEG_OK);
    CHECK_INT(add_call(turn, "2"), PEG_OK);
    CHECK_INT(add_call(turn, "3"), PEG_OK);
    CHECK_INT(add(turn, RESULT("r2", .key = "2")), PEG_OK);

    CHECK_INT(peg_turn_next_pending(turn, 0), 1);
    CHECK_INT(peg_turn_next_pending(turn, 2), 3);
    CHECK_INT(peg_turn_next_pending(turn, 4), 5);
    CHECK_STR(peg_record_key(peg_turn_result_of(turn, peg__str("2"))), "2");
    CHECK(!peg_turn_result_of(turn, peg__str("1")));
    CHECK(!peg_turn_result_of(turn, peg__str("r2")));
}

/* Equal provider ids are kept apart by the id of the call block. */
/* T115, T157 */
TEST(turn_keeps_calls_with_one_provider_id_apart)
{
    TURN turn = turn_new();

    CHECK_INT(add_call(turn, "1"), PEG_OK);
    CHECK_INT(add(turn, RESULT("r1", .key = "1", .is_artifact = true)), PEG_OK);
    CHECK_INT(add_call(turn, "2"), PEG_OK);
    CHECK_INT(peg_turn_next_pending(turn, 0), 2);
    CHECK_INT(add(turn, RESULT("r2", .key = "2", .handle = "call~2", .is_artifact = true)), PEG_OK);

    CHECK_INT(peg_turn_next_pending(turn, 0), peg_turn_len(turn));
    CHECK(peg_turn_result_of(turn, peg__str("1")) == peg_block_record(peg_turn_at(turn, 1)));
    CHECK(peg_turn_result_of(turn, peg__str("2")) == peg_block_record(peg_turn_at(turn, 3)));
}

TEST(turn_makes_a_call_pending_again_when_its_result_goes)
{
    TURN turn = turn_new();

    CHECK_INT(add_call(turn, "1"), PEG_OK);
    CHECK_INT(add(turn, RESULT("r1", .key = "1")), PEG_OK);
    CHECK_INT(add(turn, RESULT("r1b", .key = "1")), PEG_OK);

    CHECK_INT(peg_turn_remove(turn, peg__str("r1"), NULL), PEG_OK);
    CHECK(peg_turn_result_of(turn, peg__str("1")) == peg_block_record(peg_turn_at(turn, 1)));
    CHECK_INT(peg_turn_remove(turn, peg__str("r1b"), NULL), PEG_OK);
    CHECK_INT(peg_turn_next_pending(turn, 0), 0);
}

TEST(turn_put_moves_a_result_to_another_call)
{
    TURN turn = turn_new();

    CHECK_INT(add_call(turn, "1"), PEG_OK);
    CHECK_INT(add_call(turn, "2"), PEG_OK);
    CHECK_INT(add(turn, RESULT("r", .key = "1")), PEG_OK);
    CHECK_INT(put(turn, RESULT("r", .key = "2")), PEG_OK);

    CHECK_INT(peg_turn_next_pending(turn, 0), 0);
    CHECK_INT(peg_turn_next_pending(turn, 1), 3);
}

/* T98 */
TEST(turn_counts_calls_by_checksum)
{
    TURN turn = turn_new();
    char same[65];
    char other[65];
    BLOCK probe = RESULT("p", .args = "{\"x\":1}");

    snprintf(same, sizeof(same), "%s", peg_record_checksum(peg_block_record(probe)));
    CHECK_INT(peg_turn_call_count(turn, same), 0);
    CHECK_INT(add(turn, RESULT("1", .key = "k1", .args = "{\"x\":1}")), PEG_OK);
    CHECK_INT(peg_turn_call_count(turn, same), 1);
    CHECK_INT(add(turn, RESULT("2", .key = "k2", .args = "{ \"x\" : 1 }")), PEG_OK);
    CHECK_INT(peg_turn_call_count(turn, same), 2);
    CHECK_INT(peg_turn_remove(turn, peg__str("1"), NULL), PEG_OK);
    CHECK_INT(peg_turn_call_count(turn, same), 1);

    CHECK_INT(put(turn, RESULT("2", .key = "k2", .args = "{\"x\":2}")), PEG_OK);
    snprintf(other, sizeof(other), "%s",
             peg_record_checksum(peg_block_record(peg_turn_at(turn, 0))));
    CHECK_INT(peg_turn_call_count(turn, same), 0);
    CHECK_INT(peg_turn_call_count(turn, other), 1);
    CHECK_INT(peg_turn_call_count(turn, NULL), 0);
}

/* T98 */
TEST(turn_copy_counts_the_calls_that_were_there_before)
{
    TURN turn = turn_new();
    TURN copy = NULL;
    BLOCK block = RESULT("1", .key = "k");
    const char *checksum = peg_record_checksum(peg_block_record(block));

    CHECK_INT(peg_turn_add(turn, block, NULL), PEG_OK);
    copy = copy_of(turn);

    CHECK_INT(peg_turn_call_count(copy, checksum), 1);
}

/* ---- handles -------------------------------------------------------------------- */

/* T130 */
TEST(turn_refuses_an_artifact_whose_id_is_the_handle_of_a_result)
{
    TURN turn = turn_new();

    CHECK_INT(add(turn, RESULT("r", .key = "k", .handle = "h")), PEG_OK);

    check_collision(turn, retrieved("h"));
    CHECK_INT(add(turn, retrieved("other")), PEG_OK);
    CHECK_INT(add(turn, user("h")), PEG_OK);
}

/* T130 */
TEST(turn_refuses_a_result_whose_handle_is_the_id_of_an_artifact)
{
    TURN turn = turn_new();

    CHECK_INT(add(turn, retrieved("h")), PEG_OK);

    check_collision(turn, RESULT("r", .key = "k", .handle = "h"));
    check_collision(turn, RESULT("r", .key = "k", .handle = "h", .is_artifact = true));
}

/* T115, T157 */
TEST(turn_gives_a_result_another_handle_where_an_artifact_has_its_own)
{
    TURN turn = turn_new();
    BLOCK late = RESULT("3", .key = "c", .handle = "call", .is_artifact = true);
    peg_record *record;

    CHECK_INT(add(turn, RESULT("1", .key = "a", .handle = "call")), PEG_OK);
    CHECK_INT(add(turn, RESULT("2", .key = "b", .handle = "call", .is_artifact = true)), PEG_OK);
    CHECK_INT(peg_turn_add(turn, late, NULL), PEG_OK);
    CHECK_INT(add(turn, RESULT("4", .key = "d", .handle = "call")), PEG_OK);

    record = peg_turn_result_of(turn, peg__str("c"));
    CHECK_STR(peg_record_handle(record), "call~2");
    CHECK_STR(peg_record_call_id(record), "call");
    CHECK_STR(peg_block_id(peg_turn_at(turn, 2)), "3");
    CHECK_INT(peg_block_created_ms(peg_turn_at(turn, 2)), peg_block_created_ms(late));
    CHECK(peg_record_artifact(record) == peg_block_artifact(late));
    CHECK_STR(peg__str(peg_record_nonce(record)), peg_record_nonce(peg_block_record(late)));
    CHECK_STR(peg_record_handle(peg_block_record(late)), "call"); /* itself it stays as it was */

    /* The copy of a copy, and whose original is gone. */
    CHECK_INT(peg_turn_put(turn, late, NULL), PEG_OK);
    peg_block_unref(late);
    late = NULL;
    CHECK_INT(add(turn, RESULT("5", .key = "e", .handle = "call~2", .is_artifact = true)), PEG_OK);
    CHECK_STR(peg_record_handle(peg_turn_result_of(turn, peg__str("c"))), "call~3");
    CHECK_STR(peg_record_handle(peg_turn_result_of(turn, peg__str("e"))), "call~2");
    CHECK_STR(peg_record_tool(peg_turn_result_of(turn, peg__str("c"))), "look");
}

TEST(turn_frees_a_handle_with_its_block)
{
    TURN turn = turn_new();

    CHECK_INT(add(turn, RESULT("1", .key = "a", .handle = "h", .is_artifact = true)), PEG_OK);
    CHECK_INT(add(turn, RESULT("2", .key = "b", .handle = "h")), PEG_OK);
    CHECK_INT(peg_turn_remove(turn, peg__str("1"), NULL), PEG_OK);

    check_collision(turn, retrieved("h"));
    CHECK_INT(peg_turn_remove(turn, peg__str("2"), NULL), PEG_OK);
    CHECK_INT(add(turn, retrieved("h")), PEG_OK);
}

TEST(turn_put_looks_at_handles_of_other_blocks_only)
{
    TURN turn = turn_new();
    peg_error error;
    BLOCK clash = retrieved("h");

    CHECK_INT(add(turn, RESULT("h", .key = "a", .handle = "h", .is_artifact = true)), PEG_OK);
    CHECK_INT(put(turn, RESULT("h", .key = "a", .handle = "h", .is_artifact = true)), PEG_OK);
    CHECK_INT(add(turn, RESULT("2", .key = "b", .handle = "h")), PEG_OK);

    CHECK_INT(peg_turn_put(turn, clash, &error), PEG_EEXISTS);
    CHECK_STR(peg__str(error.code), "E_ARTIFACT_ID_COLLISION");
    CHECK_INT(peg_turn_remove(turn, peg__str("2"), NULL), PEG_OK);
    CHECK_INT(peg_turn_put(turn, clash, &error), PEG_OK);
}

static void check_handle(const peg_turn *turn, const struct peg__map *taken, peg_str call_id,
                         const char *expected)
{
    char *handle = NULL;
    size_t len = 0;

    CHECK_INT(peg__turn_handle(turn, call_id, taken, &handle, &len), PEG_OK);
    CHECK_STR(peg__strn(handle, len), expected);
    CHECK_INT(handle[len], '\0');
    peg__free(handle);
}

/* T115, T157 */
TEST(turn_makes_handles_that_are_free)
{
    TURN turn = turn_new();
    struct peg__map taken = PEG__MAP(10);

    check_handle(turn, NULL, peg__str("h"), "h");
    CHECK_INT(add(turn, RESULT("1", .key = "a", .handle = "h")), PEG_OK);
    check_handle(turn, NULL, peg__str("h"), "h~2");
    CHECK_INT(add(turn, retrieved("h~2")), PEG_OK);
    check_handle(turn, NULL, peg__str("h"), "h~3");
    CHECK_INT(add(turn, user("h~3")), PEG_OK);
    check_handle(turn, NULL, peg__str("h"), "h~3");

    CHECK_INT(peg__map_add(&taken, peg__str("h~3"), NULL), PEG_OK);
    check_handle(turn, &taken, peg__str("h"), "h~4");
    check_handle(turn, &taken, peg__str("i"), "i");
    peg__map_free(&taken);
}

TEST(turn_makes_handles_of_ids_with_a_nul)
{
    TURN turn = turn_new();
    char *handle = NULL;
    size_t len = 0;

    CHECK_INT(peg__turn_handle(turn, peg__strn("a\0b", 3), NULL, &handle, &len), PEG_OK);

    CHECK_INT(len, 3);
    CHECK_INT(memcmp(handle, "a\0b", 4), 0);
    peg__free(handle);
}

TORTURE(turn_handle_survives_any_allocation_failure)
{
    char *handle = NULL;
    peg_turn *turn = NULL;
    peg_status status = peg_turn_new(&turn, NULL);

    if (!status)
        status = peg__turn_handle(turn, peg__str("c"), NULL, &handle, NULL);
    CHECK(!status == (handle != NULL));
    peg__free(handle);
    peg_turn_free(turn);
    return status;
}

TORTURE(turn_that_gives_another_handle_survives_any_allocation_failure)
{
    peg_reader *reader = NULL;
    peg_artifact *kept = NULL;
    peg_turn *turn = NULL;
    peg_status status = peg_turn_new(&turn, NULL);

    if (!status)
        status = peg_reader_from_bytes((peg_str)PEG_LIT("bytes"), &reader, NULL);
    if (!status)
        status = peg_artifact_new(NULL, reader, &kept, NULL);
    for (size_t i = 0; i < 3 && !status; i++) {
        const peg_record_def def = {PEG_RECORD_DEF_INIT, .call_id = PEG_LIT("c"),
                                    .tool = PEG_LIT("look"), .artifact = kept};
        peg_block_def result = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_RESULT};
        peg_block *block = NULL;

        status = peg_record_new(&def, &result.record, NULL);
        if (!status)
            status = peg_block_new(&result, &block, NULL);
        if (!status)
            status = peg_turn_add(turn, block, NULL);
        CHECK_INT(peg_turn_len(turn), status ? i : i + 1);
        peg_block_unref(block);
        peg_record_unref(result.record);
    }
    peg_turn_free(turn);
    peg_artifact_unref(kept);
    peg_reader_unref(reader);
    return status;
}
