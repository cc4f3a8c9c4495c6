/* SPDX-License-Identifier: Apache-2.0 */

/* What a turn has beside its list of blocks: where blocks are put, what is new, ids, the system
 * prompt, and what a block carries beside its content. */

#include "../t.h"
#include "base/limits.h"
#include "base/text/str.h"
#include "pegboard/cleanup.h"
#include "pegboard/runner.h"
#include "turn/turn.h"

#define TURN PEG_CLEANUP(peg_turn_freep) peg_turn *
#define BLOCK PEG_CLEANUP(peg_block_unrefp) peg_block *
#define DOC PEG_CLEANUP(peg_json_doc_freep) peg_json_doc *

static peg_turn *turn_new(void)
{
    peg_turn *turn = NULL;

    CHECK_INT(peg_turn_new(&turn, NULL), PEG_OK);
    return turn;
}

static peg_block *text_block(const char *id)
{
    const peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER, .id = peg_cstr(id),
                               .text = peg_cstr(id)};
    peg_block *block = NULL;

    CHECK_INT(peg_block_new(&def, &block, NULL), PEG_OK);
    return block;
}

static void insert(peg_turn *turn, size_t at, const char *id)
{
    BLOCK block = text_block(id);

    CHECK_INT(peg_turn_insert(turn, at, block, NULL), PEG_OK);
    CHECK(peg_turn_find(turn, peg_cstr(id)) == block);
}

static void check_order(const peg_turn *turn, const char *expected)
{
    char order[256] = "";

    for (size_t i = 0; i < peg_turn_len(turn); i++) {
        const peg_str id = peg_block_id(peg_turn_at(turn, i));

        CHECK(peg_turn_find(turn, id) == peg_turn_at(turn, i));
        snprintf(order + strlen(order), sizeof(order) - strlen(order), "%.*s ", PEG_ARG(id));
    }
    CHECK_STR(peg__str(order), expected);
}

/* ---- places ------------------------------------------------------------------------- */

/* G5 */
TEST(a_block_is_inserted_before_the_last_or_wherever_it_is_to_stand)
{
    TURN turn = turn_new();

    insert(turn, 0, "a"); /* before the last of an empty turn: at the end */
    insert(turn, peg_turn_len(turn) - 1, "b");
    check_order(turn, "b a ");
    insert(turn, peg_turn_len(turn) - 1, "c");
    insert(turn, 0, "d");
    insert(turn, 99, "e");
    check_order(turn, "d b c a e ");
    CHECK_INT(peg_turn_remove(turn, peg_cstr("b"), NULL), PEG_OK);
    insert(turn, 1, "f");
    check_order(turn, "d f c a e ");
}

TEST(inserting_an_id_that_is_taken_changes_nothing)
{
    TURN turn = turn_new();
    BLOCK block = text_block("a");

    insert(turn, 0, "a");
    CHECK_INT(peg_turn_insert(turn, 0, block, NULL), PEG_EEXISTS);
    check_order(turn, "a ");
}

TEST(a_copy_does_not_see_what_is_inserted)
{
    TURN turn = turn_new();
    TURN copy = NULL;

    insert(turn, 0, "a");
    CHECK_INT(peg_turn_copy(turn, &copy, NULL), PEG_OK);
    insert(turn, 0, "b");
    check_order(copy, "a ");
    check_order(turn, "b a ");
}

/* G8: every block has an id here, so none is passed over */
TEST(what_is_new_since_a_baseline_is_told_by_id)
{
    TURN turn = turn_new();
    TURN baseline = NULL;

    insert(turn, 0, "a");
    insert(turn, 1, "b");
    CHECK_INT(peg_turn_copy(turn, &baseline, NULL), PEG_OK);
    insert(turn, 1, "x");
    insert(turn, 99, "y");

    CHECK_INT(peg_turn_next_new(turn, baseline, 0), 1);
    CHECK_INT(peg_turn_next_new(turn, baseline, 2), 3);
    CHECK_INT(peg_turn_next_new(turn, baseline, 4), 4);
    CHECK_INT(peg_turn_next_new(baseline, turn, 0), 2);
    CHECK_INT(peg_turn_next_new(turn, NULL, 2), 2);
}

/* ---- ids ------------------------------------------------------------------------------ */

TEST(a_turn_has_an_id_of_its_own_that_can_be_changed)
{
    TURN turn = turn_new();
    TURN other = turn_new();
    char id[PEG_LIMIT_ID_BYTES + 1];
    peg_error error;

    memset(id, 'x', sizeof(id));
    CHECK_INT(peg_turn_id(turn).len, 36);
    CHECK(strcmp(peg_turn_id(turn).ptr, peg_turn_id(other).ptr) != 0);
    CHECK_INT(peg_turn_set_id(turn, peg__strn(id, sizeof(id) - 1), NULL), PEG_OK);
    CHECK_INT(peg_turn_id(turn).len, PEG_LIMIT_ID_BYTES);
    CHECK_INT(peg_turn_set_id(turn, peg__strn(id, sizeof(id)), &error), PEG_EINVAL);
    CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    CHECK_INT(peg_turn_set_id(turn, peg_cstr("\xff"), NULL), PEG_EINVAL);
    CHECK_INT(peg_turn_set_id(turn, peg_cstr(""), NULL), PEG_OK);
    CHECK_INT(peg_turn_id(turn).len, 0);
}

/* G146 */
TEST(going_on_with_a_turn_makes_another_and_leaves_the_history_as_it_is)
{
    TURN turn = turn_new();
    TURN next = NULL;

    insert(turn, 0, "a");
    CHECK_INT(peg_turn_set_string(turn, &peg_key_session_id, peg_cstr("s"), NULL), PEG_OK);
    CHECK_INT(peg_turn_follow(turn, peg_cstr("and then?"), &next, NULL), PEG_OK);

    CHECK(strcmp(peg_turn_id(turn).ptr, peg_turn_id(next).ptr) != 0);
    CHECK_INT(peg_turn_len(turn), 1);
    CHECK_INT(peg_turn_len(next), 2);
    CHECK_STR(peg_block_text(peg_turn_at(next, 1)), "and then?");
    CHECK_INT(peg_bag_len(peg_turn_metadata(next)), 1);
}

/* G7 */
TEST(going_on_without_a_prompt_adds_no_block)
{
    TURN turn = turn_new();
    TURN next = NULL;

    insert(turn, 0, "a");
    CHECK_INT(peg_turn_follow(turn, peg_cstr(""), &next, NULL), PEG_OK);
    check_order(next, "a ");
}

/* ---- the system prompt ------------------------------------------------------------------ */

/* G133, G7 */
TEST(the_system_prompt_is_inserted_replaced_and_left_alone)
{
    TURN turn = turn_new();
    peg_block *first;
    const peg_json *mark = NULL;

    insert(turn, 0, "a");
    CHECK_INT(peg_turn_set_system(turn, peg_cstr(""), NULL), PEG_OK);
    CHECK_INT(peg_turn_len(turn), 1);
    CHECK_INT(peg_turn_set_system(turn, peg_cstr("be kind"), NULL), PEG_OK);
    first = peg_turn_at(turn, 0);
    CHECK_INT(peg_block_kind_of(first), PEG_BLOCK_SYSTEM);
    CHECK_INT(peg_turn_set_system(turn, peg_cstr("be kind"), NULL), PEG_OK);
    CHECK(peg_turn_at(turn, 0) == first);
    CHECK_INT(peg_turn_set_system(turn, peg_cstr("be brief"), NULL), PEG_OK);

    CHECK_INT(peg_turn_len(turn), 2);
    CHECK_STR(peg_block_text(peg_turn_at(turn, 0)), "be brief");
    CHECK_INT(peg_bag_get(peg_block_metadata(peg_turn_at(turn, 0)), PEG_BAG_BLOCK,
                          &peg_key_middleware, &mark, NULL),
              PEG_OK);
    CHECK_STR(peg_json_str(mark), "systemprompt");
}

/* ---- what blocks carry --------------------------------------------------------------------- */

static peg_json_doc *parse(const char *text)
{
    peg_json_doc *doc = NULL;

    CHECK_INT(peg_json_parse(peg_cstr(text), NULL, &doc, NULL), PEG_OK);
    return doc;
}

/* G1, G2 */
TEST(each_kind_of_block_has_its_own_fields_and_ids_of_calls_and_results_differ)
{
    static const peg_block_kind kinds[] = {PEG_BLOCK_SYSTEM, PEG_BLOCK_USER, PEG_BLOCK_ASSISTANT,
                                           PEG_BLOCK_REASONING};
    const peg_record_def record_def = {PEG_RECORD_DEF_INIT, .call_id = peg_cstr("c1"),
                                       .tool = peg_cstr("t"), .args = peg_cstr("{}"),
                                       .text = peg_cstr("r")};
    TURN turn = turn_new();
    peg_record *record = NULL;
    BLOCK result = NULL;

    for (size_t i = 0; i < 4; i++) {
        CHECK_INT(peg_turn_add_text(turn, kinds[i], peg_cstr("words"), NULL), PEG_OK);
        CHECK_STR(peg_block_text(peg_turn_at(turn, i)), "words");
        CHECK_INT(peg_block_tool(peg_turn_at(turn, i)).len, 0);
    }
    CHECK_INT(peg_turn_add_call(turn, peg_cstr("c1"), peg_cstr("t"), peg_cstr("{}"), NULL), PEG_OK);
    CHECK_INT(peg_record_new(&record_def, &record, NULL), PEG_OK);
    CHECK_INT(peg_block_new(&(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_RESULT,
                                                   .record = record},
                            &result, NULL),
              PEG_OK);
    CHECK_INT(peg_turn_add(turn, result, NULL), PEG_OK);

    CHECK_STR(peg_block_call_id(peg_turn_at(turn, 4)), "c1");
    CHECK_STR(peg_block_call_id(result), "c1");
    CHECK(!peg__str_eq(peg_block_id(peg_turn_at(turn, 4)), peg_block_id(result)));
    peg_record_unref(record);
}

TEST(a_thought_may_be_sealed_and_has_no_words_then)
{
    DOC payload = parse("{\"encrypted_content\":\"abc\",\"item_id\":\"rs_1\"}");
    const peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_REASONING,
                               .payload = peg_json_root(payload)};
    BLOCK block = NULL;

    CHECK_INT(peg_block_new(&def, &block, NULL), PEG_OK);
    CHECK_INT(peg_block_text(block).len, 0);
    CHECK_STR(peg_json_str(peg_json_get(peg_block_payload(block), "item_id")), "rs_1");
    CHECK_INT(peg_block_new(&(const peg_block_def){PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_REASONING},
                            &block, NULL),
              PEG_EINVAL);
}

TEST(a_payload_is_an_object_without_names_that_are_ours)
{
    static const char *const bad[] = {"[]", "{\"text\":1}", "3"};
    peg_error error;
    BLOCK block = NULL;

    for (size_t i = 0; i < 3; i++) {
        DOC payload = parse(bad[i]);
        const peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_USER,
                                   .text = peg_cstr("x"), .payload = peg_json_root(payload)};

        CHECK_INT(peg_block_new(&def, &block, &error), PEG_EINVAL);
        CHECK_STR(peg__str(error.where), "/payload");
    }
}

TEST(a_block_with_other_metadata_is_the_same_otherwise)
{
    DOC payload = parse("{\"signature\":\"s\"}");
    const peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_REASONING,
                               .text = peg_cstr("hm"), .payload = peg_json_root(payload),
                               .created_ms = 5};
    BLOCK block = NULL;
    BLOCK marked = NULL;
    PEG_CLEANUP(peg_bag_unrefp) peg_bag *bag = NULL;
    peg_json_builder *b = peg_json_builder_new();

    peg_json_add_string(b, peg_cstr("m"));
    CHECK_INT(peg_bag_with_built(NULL, &peg_key_middleware, b, &bag, NULL), PEG_OK);
    CHECK_INT(peg_block_new(&def, &block, NULL), PEG_OK);
    CHECK_INT(peg_block_with_metadata(block, bag, &marked, NULL), PEG_OK);

    CHECK(!peg_block_metadata(block));
    CHECK_INT(peg_bag_len(peg_block_metadata(marked)), 1);
    CHECK(peg__str_eq(peg_block_id(block), peg_block_id(marked)));
    CHECK_STR(peg_block_text(marked), "hm");
    CHECK_INT(peg_block_created_ms(marked), 5);
    CHECK(peg_json_get(peg_block_payload(marked), "signature"));
}

/* ---- runs ------------------------------------------------------------------------------------ */

static peg_status run_again(peg_dispatch *dispatch, void *user, peg_error *reterr)
{
    peg_turn *turn = user;
    peg_error error;

    (void)dispatch;
    (void)reterr;
    CHECK_INT(peg_turn_set_string(turn, &peg_key_session_id, peg_cstr("x"), &error), PEG_ESTATE);
    CHECK_STR(peg__str(error.code), "E_TURN_BUSY");
    CHECK_INT(peg_turn_set_id(turn, peg_cstr("x"), NULL), PEG_ESTATE);
    return PEG_OK;
}

/* G145 (a second start while one runs is tested in test_runner.c) */
TEST(bags_and_id_of_a_turn_cannot_be_changed_while_a_dispatch_works_on_it)
{
    TURN turn = turn_new();
    const peg_dispatch_options loop = {PEG_DISPATCH_OPTIONS_INIT, .engine = {run_again, turn}};
    const peg_dispatch_input input = {PEG_DISPATCH_INPUT_INIT, .turn = turn};
    peg_outcome outcome;

    insert(turn, 0, "a");
    CHECK_INT(peg_dispatch_run(NULL, &loop, &input, &outcome, NULL), PEG_OK);
    CHECK_INT(outcome.end, PEG_END_ACK);
}

TORTURE(blocks_with_all_they_carry_survive_any_allocation_failure)
{
    peg_turn *turn = NULL;
    peg_turn *next = NULL;
    peg_json_doc *doc = NULL;
    peg_block *block = NULL;
    peg_status status = peg_turn_new(&turn, NULL);

    if (!status)
        status = peg_turn_set_system(turn, peg_cstr("be kind"), NULL);
    if (!status)
        status = peg_turn_set_system(turn, peg_cstr("be brief"), NULL);
    if (!status)
        status = peg_turn_follow(turn, peg_cstr("go on"), &next, NULL);
    if (!status)
        status = peg_json_parse(peg_cstr("{\"a\":1}"), NULL, &doc, NULL);
    if (!status) {
        const peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_REASONING,
                                   .payload = peg_json_root(doc)};

        status = peg_block_new(&def, &block, NULL);
    }
    if (!status)
        status = peg_turn_insert(next, 0, block, NULL);
    peg_block_unref(block);
    peg_json_doc_free(doc);
    peg_turn_free(turn);
    peg_turn_free(next);
    return status;
}

/* ---- storages and memory ------------------------------------------------------------------ */

static peg_status count_store(void *user, peg_ctx *ctx, peg_block *block, peg_error *reterr)
{
    (void)ctx;
    (void)block;
    (void)reterr;
    ++*(size_t *)user;
    return PEG_OK;
}

/* Capacity comes first: a storage never gets a block that the turn then has no memory for. */
TORTURE(a_storage_is_told_only_of_what_the_turn_gets)
{
    size_t n_stored = 0;
    const peg_storage storage = {.store = count_store, .mutate = count_store, .user = &n_stored};
    peg_turn *turn = NULL;
    peg_status status = peg_turn_new(&turn, NULL);

    if (status)
        return status;
    peg__turn_attach(turn, &storage, NULL);
    for (int i = 0; i < 40 && !status; i++)
        status = peg_turn_add_text(turn, PEG_BLOCK_USER, peg_cstr("x"), NULL);
    CHECK_INT(n_stored, peg_turn_len(turn));
    peg_turn_free(turn);
    return status;
}
