/* SPDX-License-Identifier: Apache-2.0 */

#include "engine/reply.h"

#include "../turn/fixture.h"
#include "base/limits.h"

/* ---- fixture: a turn with a question, and a reply that nobody hears ------------------ */

struct world {
    peg_turn *turn;
    struct peg__reply reply;
    peg_error error;
};

static peg_status open_world(struct world *w)
{
    const struct peg__reply_def def = {.vendor = PEG_VENDOR_OPENAI_CHAT, .model = "asked"};
    struct peg__reply_def full = def;
    peg_status status;

    *w = (struct world){.turn = NULL};
    status = peg_turn_new(&w->turn, &w->error);
    if (!status)
        status = peg_turn_add_text(w->turn, PEG_BLOCK_USER, peg_cstr("hello"), &w->error);
    full.turn = w->turn;
    peg__reply_init(&w->reply, &full);
    return status;
}

static struct world *opened_world(struct world *w)
{
    CHECK_STATUS(open_world(w), PEG_OK, w->error);
    return w;
}

static void close_world(struct world *w)
{
    peg__reply_free(&w->reply);
    peg_turn_free(w->turn);
}

static void say(struct peg__reply *reply, uint32_t rank, const char *text)
{
    peg__part_add(reply, peg__reply_part(reply, rank, PEG__PART_TEXT), peg_cstr(text));
}

static void think(struct peg__reply *reply, uint32_t rank, const char *text)
{
    peg__part_add(reply, peg__reply_part(reply, rank, PEG__PART_THOUGHT), peg_cstr(text));
}

static struct peg__part *call(struct peg__reply *reply, uint32_t rank, const char *id,
                              const char *name)
{
    struct peg__part *part = peg__reply_part(reply, rank, PEG__PART_CALL);

    peg__part_set_call_id(reply, part, peg_cstr(id));
    peg__part_add_name(reply, part, peg_cstr(name));
    return part;
}

static void say_payload(struct peg__reply *reply, struct peg__part *part, const char *name,
                        const char *json)
{
    peg_json_doc *doc = NULL;

    if (peg_json_parse(peg_cstr(json), NULL, &doc, NULL) == PEG_OK)
        peg__part_payload(reply, part, name, peg_json_root(doc));
    peg_json_doc_free(doc);
}

static peg_status finish(struct world *w)
{
    return peg__reply_finish(&w->reply, true, &w->error);
}

/* A member of the result of the i-th block, or of the turn where i is beyond; "" if missing. */
static peg_str result_word(const peg_turn *turn, size_t i, const char *name)
{
    const peg_block *block = peg_turn_at(turn, i);
    const peg_bag *bag = block ? peg_block_metadata(block) : peg_turn_metadata(turn);
    const peg_json *result = peg_bag_find(bag, peg_cstr("pegboard.inference_result@v1"));
    const peg_json *value = result ? peg_json_get(result, name) : NULL;

    return value && value->kind == PEG_JSON_STRING ? peg_json_str(value) : peg_cstr("");
}

static int64_t result_number(const peg_turn *turn, size_t i, const char *pointer)
{
    const peg_block *block = peg_turn_at(turn, i);
    const peg_bag *bag = block ? peg_block_metadata(block) : peg_turn_metadata(turn);
    const peg_json *result = peg_bag_find(bag, peg_cstr("pegboard.inference_result@v1"));
    const peg_json *value = NULL;
    int64_t number = -1;

    if (result && !peg_json_pointer(result, peg_cstr(pointer), &value, NULL))
        peg_json_int64(value, &number);
    return number;
}

enum { OF_TURN = 1000 };

/* ---- blocks -------------------------------------------------------------------------- */

TEST(text_that_comes_in_pieces_becomes_one_block)
{
    struct world w;

    opened_world(&w);
    say(&w.reply, 1, "it ");
    say(&w.reply, 1, "rains");
    CHECK_STATUS(finish(&w), PEG_OK, w.error);

    CHECK_INT(peg_turn_len(w.turn), 2);
    CHECK_INT(peg_block_kind_of(peg_turn_at(w.turn, 1)), PEG_BLOCK_ASSISTANT);
    CHECK_STR(peg_block_text(peg_turn_at(w.turn, 1)), "it rains");
    close_world(&w);
}

TEST(blocks_stand_in_the_order_of_their_ranks)
{
    struct world w;

    opened_world(&w);
    peg__part_add(&w.reply, call(&w.reply, 12, "c2", "b"), peg_cstr("{}"));
    say(&w.reply, 5, "text");
    peg__part_add(&w.reply, call(&w.reply, 11, "c1", "a"), peg_cstr("{}"));
    think(&w.reply, 0, "thought");
    CHECK_STATUS(finish(&w), PEG_OK, w.error);

    CHECK_INT(peg_turn_len(w.turn), 5);
    CHECK_STR(peg_block_text(peg_turn_at(w.turn, 1)), "thought");
    CHECK_INT(peg_block_kind_of(peg_turn_at(w.turn, 1)), PEG_BLOCK_REASONING);
    CHECK_STR(peg_block_text(peg_turn_at(w.turn, 2)), "text");
    CHECK_STR(peg_block_call_id(peg_turn_at(w.turn, 3)), "c1");
    CHECK_STR(peg_block_call_id(peg_turn_at(w.turn, 4)), "c2");
    close_world(&w);
}

TEST(parts_that_are_empty_are_left_out)
{
    struct world w;

    opened_world(&w);
    say(&w.reply, 1, "");
    think(&w.reply, 2, "");
    peg__reply_part(&w.reply, 3, PEG__PART_CALL);
    CHECK(!peg__reply_has_content(&w.reply));
    CHECK(!peg__reply_has_calls(&w.reply));
    CHECK_STATUS(finish(&w), PEG_OK, w.error);

    CHECK_INT(peg_turn_len(w.turn), 1);
    CHECK_STR(result_word(w.turn, OF_TURN, "model"), "asked");
    close_world(&w);
}

TEST(a_thought_with_nothing_but_a_payload_is_kept)
{
    struct world w;
    struct peg__part *part;
    const peg_json *payload;

    opened_world(&w);
    part = peg__reply_part(&w.reply, 0, PEG__PART_THOUGHT);
    say_payload(&w.reply, part, "signature", "\"old\"");
    say_payload(&w.reply, part, "summary", "[1]");
    say_payload(&w.reply, part, "signature", "\"sealed\"");
    CHECK(peg__reply_has_content(&w.reply));
    CHECK_STATUS(finish(&w), PEG_OK, w.error);

    payload = peg_block_payload(peg_turn_at(w.turn, 1));
    CHECK(payload != NULL);
    CHECK_STR(peg_json_str(peg_json_get(payload, "signature")), "sealed");
    CHECK_INT(peg_json_len(peg_json_get(payload, "summary")), 1);
    close_world(&w);
}

TEST(a_call_has_the_id_name_and_arguments_that_came_in_pieces)
{
    struct world w;
    struct peg__part *part;
    const peg_block *block;

    opened_world(&w);
    part = call(&w.reply, 2, "c1", "get_");
    peg__part_set_call_id(&w.reply, part, peg_cstr(""));
    peg__part_set_call_id(&w.reply, part, peg_cstr("another"));
    peg__part_add_name(&w.reply, part, peg_cstr("weather"));
    peg__part_add(&w.reply, part, peg_cstr("{\"city\":"));
    peg__part_add(&w.reply, part, peg_cstr("\"Oslo\"}"));
    CHECK(peg__reply_has_calls(&w.reply));
    CHECK_STATUS(finish(&w), PEG_OK, w.error);

    block = peg_turn_at(w.turn, 1);
    CHECK_STR(peg_block_call_id(block), "c1");
    CHECK_STR(peg_block_tool(block), "get_weather");
    CHECK_STR(peg_block_args(block), "{\"city\":\"Oslo\"}");
    CHECK_STR(result_word(w.turn, 1, "finish_class"), "tool_calls_pending");
    close_world(&w);
}

TEST(a_call_without_an_id_gets_one)
{
    struct world w;

    opened_world(&w);
    call(&w.reply, 2, "", "a");
    call(&w.reply, 3, "", "a");
    CHECK_STATUS(finish(&w), PEG_OK, w.error);

    CHECK(peg_block_call_id(peg_turn_at(w.turn, 1)).len > 0);
    CHECK(!peg__str_eq(peg_block_call_id(peg_turn_at(w.turn, 1)),
                       peg_block_call_id(peg_turn_at(w.turn, 2))));
    close_world(&w);
}

TEST(metadata_of_a_part_is_on_its_block_beside_the_result)
{
    struct world w;
    struct peg__part *part;
    const peg_bag *bag;

    opened_world(&w);
    part = call(&w.reply, 0, "c1", "a");
    peg__part_metadata(&w.reply, part, &peg_key_gemini_thought, peg_cstr("sig"));
    CHECK_STATUS(finish(&w), PEG_OK, w.error);

    bag = peg_block_metadata(peg_turn_at(w.turn, 1));
    CHECK_INT(peg_bag_len(bag), 2);
    CHECK_STR(peg_json_str(peg_bag_find(bag, peg_cstr("gemini.thought_signature@v1"))), "sig");
    close_world(&w);
}

TEST(a_final_word_replaces_what_came_before)
{
    struct world w;
    struct peg__part *part;

    opened_world(&w);
    part = peg__reply_part(&w.reply, 0, PEG__PART_TEXT);
    peg__part_add(&w.reply, part, peg_cstr("helo"));
    peg__part_set(&w.reply, part, peg_cstr("hello"));
    peg__part_set(&w.reply, part, peg_cstr("hello, you"));
    peg__part_set(&w.reply, part, peg_cstr("bye"));
    CHECK_STATUS(finish(&w), PEG_OK, w.error);

    CHECK_STR(peg_block_text(peg_turn_at(w.turn, 1)), "bye");
    close_world(&w);
}

/* ---- what is known about it ------------------------------------------------------------ */

TEST(the_result_tells_what_the_provider_told)
{
    struct world w;

    opened_world(&w);
    say(&w.reply, 0, "hi");
    peg__reply_set(&w.reply, &w.reply.model, peg_cstr("m-2026"));
    peg__reply_set(&w.reply, &w.reply.model, peg_cstr(""));
    peg__reply_set(&w.reply, &w.reply.stop_reason, peg_cstr("stop"));
    peg__reply_set(&w.reply, &w.reply.response_id, peg_cstr("resp"));
    peg__reply_set(&w.reply, &w.reply.request_id, peg_cstr("req"));
    w.reply.usage.input_tokens = 12;
    w.reply.usage.cache_read_tokens = 3;
    CHECK_STATUS(finish(&w), PEG_OK, w.error);

    for (size_t i = 1; i <= OF_TURN; i += OF_TURN - 1) {
        CHECK_STR(result_word(w.turn, i, "provider"), "openai-chat");
        CHECK_STR(result_word(w.turn, i, "model"), "m-2026");
        CHECK_STR(result_word(w.turn, i, "stop_reason"), "stop");
        CHECK_STR(result_word(w.turn, i, "finish_class"), "completed");
        CHECK_STR(result_word(w.turn, i, "response_id"), "resp");
        CHECK_STR(result_word(w.turn, i, "request_id"), "req");
        CHECK_INT(result_number(w.turn, i, "/usage/input_tokens"), 12);
        CHECK_INT(result_number(w.turn, i, "/usage/output_tokens"), 0);
        CHECK_INT(result_number(w.turn, i, "/usage/cache_read_input_tokens"), 3);
        CHECK_INT(result_number(w.turn, i, "/usage/cached_tokens"), -1);
        CHECK(result_number(w.turn, i, "/duration_ms") >= 0);
        CHECK_INT(result_number(w.turn, i, "/sequence"), 1);
    }
    close_world(&w);
}

TEST(usage_that_nobody_told_is_left_out)
{
    struct world w;
    const peg_json *result;

    opened_world(&w);
    CHECK_STATUS(finish(&w), PEG_OK, w.error);

    CHECK_STATUS(peg_turn_get(w.turn, &peg_key_inference_result, &result, &w.error), PEG_OK,
                 w.error);
    CHECK(!peg_json_get(result, "usage"));
    CHECK(!peg_json_get(result, "response_id"));
    close_world(&w);
}

TEST(the_class_of_the_end_follows_from_the_stop_reason)
{
    static const struct {
        const char *reason;
        const char *expected;
        bool truncated;
    } cases[] = {
        {"", "unknown", false},
        {"unknown", "unknown", false},
        {"length", "max_tokens", true},
        {"max_tokens", "max_tokens", true},
        {"MAX_TOKENS", "max_tokens", true},
        {"max_output_tokens", "max_tokens", true},
        {"model_length", "max_tokens", true},
        {"cancelled", "interrupted", false},
        {"canceled", "interrupted", false},
        {"interrupted", "interrupted", false},
        {"error", "error", false},
        {"failed", "error", false},
        {"stop", "completed", false},
        {"end_turn", "completed", false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world w;
        const peg_json *result;

        opened_world(&w);
        peg__reply_set(&w.reply, &w.reply.stop_reason, peg_cstr(cases[i].reason));
        CHECK_STATUS(finish(&w), PEG_OK, w.error);
        CHECK_STATUS(peg_turn_get(w.turn, &peg_key_inference_result, &result, &w.error), PEG_OK,
                     w.error);

        CHECK_STR(result_word(w.turn, OF_TURN, "finish_class"), cases[i].expected);
        CHECK(peg_json_is_true(peg_json_get(result, "truncated")) == cases[i].truncated);
        close_world(&w);
    }
}

TEST(counts_that_are_none_are_passed_over)
{
    peg_json_doc *doc = NULL;
    int64_t count = 7;

    CHECK_INT(peg_json_parse(peg_cstr("{\"a\":-1,\"b\":\"x\",\"c\":1.5,\"d\":null,\"e\":3.0}"),
                             NULL, &doc, NULL),
              PEG_OK);
    peg__reply_count(&count, peg_json_root(doc), "a");
    peg__reply_count(&count, peg_json_root(doc), "b");
    peg__reply_count(&count, peg_json_root(doc), "c");
    peg__reply_count(&count, peg_json_root(doc), "d");
    peg__reply_count(&count, peg_json_root(doc), "missing");
    peg__reply_count(&count, NULL, "a");
    CHECK_INT(count, 7);
    peg__reply_count(&count, peg_json_root(doc), "e");
    CHECK_INT(count, 3);
    peg_json_doc_free(doc);
}

/* One more inference on the turn of the world. */
static peg_status again(struct world *w, const char *text)
{
    const struct peg__reply_def def = {
        .turn = w->turn, .vendor = PEG_VENDOR_ANTHROPIC, .model = "second"};
    peg_status status;

    peg__reply_free(&w->reply);
    peg__reply_init(&w->reply, &def);
    say(&w->reply, 0, text);
    status = finish(w);
    return status;
}

/* G149 */
TEST(only_new_blocks_get_the_result)
{
    struct world w;

    opened_world(&w);
    CHECK_STATUS(peg_turn_add_text(w.turn, PEG_BLOCK_ASSISTANT, peg_cstr("by hand"), &w.error),
                 PEG_OK, w.error);
    say(&w.reply, 0, "one");
    CHECK_STATUS(finish(&w), PEG_OK, w.error);
    CHECK_STATUS(again(&w, "two"), PEG_OK, w.error);

    CHECK(!peg_block_metadata(peg_turn_at(w.turn, 0)));
    CHECK(!peg_block_metadata(peg_turn_at(w.turn, 1)));
    CHECK_STR(result_word(w.turn, 2, "model"), "asked");
    CHECK_INT(result_number(w.turn, 2, "/sequence"), 1);
    CHECK_STR(result_word(w.turn, 3, "model"), "second");
    CHECK_INT(result_number(w.turn, 3, "/sequence"), 2);
    CHECK_STR(result_word(w.turn, OF_TURN, "model"), "second");
    close_world(&w);
}

TEST(inferences_are_counted_also_when_they_said_nothing_or_their_blocks_went)
{
    struct world w;

    opened_world(&w);
    CHECK_INT(peg__reply_n_inferences(w.turn), 0);
    say(&w.reply, 0, "one");
    CHECK_STATUS(finish(&w), PEG_OK, w.error);
    CHECK_STATUS(again(&w, ""), PEG_OK, w.error);
    CHECK_INT(peg__reply_n_inferences(w.turn), 2);

    CHECK_STATUS(peg_turn_remove(w.turn, peg_block_id(peg_turn_at(w.turn, 1)), &w.error), PEG_OK,
                 w.error);
    CHECK_INT(peg__reply_n_inferences(w.turn), 2);
    close_world(&w);
}

TEST(inferences_are_counted_without_the_metadata_of_the_turn)
{
    struct world w;

    opened_world(&w);
    say(&w.reply, 0, "one");
    CHECK_STATUS(finish(&w), PEG_OK, w.error);
    CHECK_STATUS(again(&w, "two"), PEG_OK, w.error);
    CHECK_STATUS(peg_turn_unset(w.turn, &peg_key_inference_result, &w.error), PEG_OK, w.error);

    CHECK_INT(peg__reply_n_inferences(w.turn), 2);
    close_world(&w);
}

static void add_foreign(struct world *w, const char *text)
{
    peg_block_def def = {PEG_BLOCK_DEF_INIT, .kind = PEG_BLOCK_ASSISTANT, .text = peg_cstr(text)};
    peg_json_builder *b = peg_json_builder_new();
    peg_block *block = NULL;

    peg_json_open_object(b);
    peg_json_close(b);
    CHECK_INT(peg_bag_with_built(NULL, &peg_key_block_inference, b, &def.metadata, NULL), PEG_OK);
    CHECK_INT(peg_block_new(&def, &block, NULL), PEG_OK);
    CHECK_INT(peg_turn_add(w->turn, block, NULL), PEG_OK);
    peg_block_unref(block);
    peg_bag_unref(def.metadata);
}

TEST(results_without_a_number_count_once_between_two_answers)
{
    struct world w;

    opened_world(&w);
    add_foreign(&w, "a");
    add_foreign(&w, "b");
    CHECK_STATUS(peg_turn_add_text(w.turn, PEG_BLOCK_USER, peg_cstr("and?"), &w.error), PEG_OK,
                 w.error);
    add_foreign(&w, "c");

    CHECK_INT(peg__reply_n_inferences(w.turn), 2);
    CHECK_STATUS(again(&w, "d"), PEG_OK, w.error);
    CHECK_INT(peg__reply_n_inferences(w.turn), 3);
    close_world(&w);
}

/* ---- what goes wrong ---------------------------------------------------------------------- */

/* G129 */
TEST(a_reply_that_broke_off_keeps_its_text_and_none_of_its_calls)
{
    struct world w;

    opened_world(&w);
    think(&w.reply, 0, "hm");
    say(&w.reply, 1, "I wil");
    peg__part_add(&w.reply, call(&w.reply, 2, "c1", "a"), peg_cstr("{\"x\":"));
    CHECK_STATUS(peg__reply_finish(&w.reply, false, &w.error), PEG_OK, w.error);

    CHECK_INT(peg_turn_len(w.turn), 3);
    CHECK_STR(peg_block_text(peg_turn_at(w.turn, 2)), "I wil");
    CHECK_INT(peg_turn_count(w.turn, PEG_BLOCKS_CALLS), 0);
    CHECK_STR(result_word(w.turn, 2, "finish_class"), "interrupted");
    close_world(&w);
}

/* G129 */
TEST(a_reply_that_failed_keeps_its_text_and_tells_the_failure)
{
    struct world w;

    opened_world(&w);
    say(&w.reply, 1, "I wil");
    call(&w.reply, 2, "c1", "a");
    CHECK_INT(peg__reply_fail(&w.reply, "event %d is odd", 3), PEG_EPARSE);
    CHECK_INT(peg__reply_fail(&w.reply, "and so on"), PEG_EPARSE);
    say(&w.reply, 1, "not heard");
    CHECK(!peg__reply_part(&w.reply, 7, PEG__PART_TEXT));
    CHECK_INT(finish(&w), PEG_EPARSE);

    CHECK_STR(peg__str(w.error.code), "E_ENGINE_REPLY");
    CHECK_STR(peg__str(w.error.message), "the reply of openai-chat: event 3 is odd");
    CHECK_INT(peg_turn_len(w.turn), 2);
    CHECK_STR(peg_block_text(peg_turn_at(w.turn, 1)), "I wil");
    close_world(&w);
}

TEST(a_rank_stands_for_one_kind_of_part)
{
    struct world w;

    opened_world(&w);
    say(&w.reply, 1, "text");
    CHECK(!peg__reply_part(&w.reply, 1, PEG__PART_CALL));

    CHECK_INT(w.reply.status, PEG_EPARSE);
    CHECK_STR(peg__str(w.reply.error.code), "E_ENGINE_REPLY");
    close_world(&w);
}

TEST(a_reply_has_a_maximum_of_bytes)
{
    struct world w;

    opened_world(&w);
    w.reply.max_bytes = w.reply.n_bytes + 8;
    say(&w.reply, 1, "12345678");
    CHECK_INT(w.reply.status, PEG_OK);
    say(&w.reply, 1, "9");

    CHECK_INT(w.reply.status, PEG_ELIMIT);
    CHECK_STR(peg__str(w.reply.error.code), "E_ENGINE_TOO_LARGE");
    close_world(&w);
}

TEST(words_about_a_reply_take_room_only_when_they_change)
{
    struct world w;
    size_t before;

    opened_world(&w);
    peg__reply_set(&w.reply, &w.reply.response_id, peg_cstr("one"));
    before = w.reply.n_bytes;
    peg__reply_set(&w.reply, &w.reply.response_id, peg_cstr("one"));
    CHECK_INT(w.reply.n_bytes, before);
    peg__reply_set(&w.reply, &w.reply.response_id, peg_cstr("two"));
    CHECK_INT(w.reply.n_bytes, before + 3);
    close_world(&w);
}

TEST(a_payload_that_is_too_large_is_refused)
{
    struct world w;

    opened_world(&w);
    w.reply.max_bytes = 64;
    say_payload(&w.reply, peg__reply_part(&w.reply, 0, PEG__PART_THOUGHT), "signature",
                "\"0123456789012345678901234567890123456789012345678901234567890123456789\"");

    CHECK_INT(w.reply.status, PEG_ELIMIT);
    close_world(&w);
}

TEST(a_reply_has_a_maximum_of_parts)
{
    const char *preload = getenv("LD_PRELOAD");
    struct world w;

    if (preload && strstr(preload, "vgpreload"))
        SKIP("an id for each part takes minutes under valgrind");
    opened_world(&w);
    for (uint32_t i = 0; i < PEG_LIMIT_REPLY_PARTS; i++)
        CHECK(peg__reply_part(&w.reply, i, PEG__PART_TEXT) != NULL);
    CHECK(!peg__reply_part(&w.reply, PEG_LIMIT_REPLY_PARTS, PEG__PART_TEXT));

    CHECK_INT(w.reply.status, PEG_EPARSE);
    CHECK_CONTAINS(peg__str(w.reply.error.message), "more than 100000 parts");
    close_world(&w);
}

TEST(an_id_that_is_too_long_is_refused)
{
    char id[PEG_LIMIT_CALL_ID_BYTES + 2];
    struct world w;

    memset(id, 'x', sizeof(id));
    id[sizeof(id) - 1] = '\0';
    opened_world(&w);
    call(&w.reply, 0, id, "a");

    CHECK_INT(w.reply.status, PEG_EPARSE);
    CHECK_CONTAINS(peg__str(w.reply.error.message), "at most 1024");
    close_world(&w);
}

TORTURE(a_reply_survives_any_allocation_failure_and_leaves_the_turn_as_it_was)
{
    struct world w;
    peg_status status = open_world(&w);
    struct peg__part *part;

    if (!status) {
        think(&w.reply, 0, "hm");
        say_payload(&w.reply, peg__reply_part(&w.reply, 0, PEG__PART_THOUGHT), "signature", "[1]");
        say(&w.reply, 1, "text");
        part = call(&w.reply, 2, "c1", "a");
        peg__part_metadata(&w.reply, part, &peg_key_gemini_thought, peg_cstr("sig"));
        peg__part_set(&w.reply, part, peg_cstr("{}"));
        peg__reply_set(&w.reply, &w.reply.stop_reason, peg_cstr("stop"));
        /* The text of a payload is the test's own: without memory for it there is none to add. */
        status = w.reply.status ? w.reply.status : finish(&w);
        if (status)
            CHECK(peg_turn_len(w.turn) == 1 && !peg_turn_metadata(w.turn));
    }
    close_world(&w);
    return status;
}

/* ---- what is told while it comes in ---------------------------------------------------------- */

static void answer_growing(const peg_event *event, void *user)
{
    struct stage *stage = user;

    if (event->kind == PEG_EVENT_MESSAGE || event->kind == PEG_EVENT_THOUGHT)
        put_event(stage, "%s +%.*s =%.*s%s; ", peg_event_name(event->kind),
                  PEG_ARG(event->u.stream.delta), PEG_ARG(event->u.stream.full),
                  event->u.stream.is_complete ? " done" : "");
    if (event->kind == PEG_EVENT_MESSAGE)
        snprintf(stage->seen, sizeof(stage->seen), "%.*s", PEG_ARG(event->u.stream.id));
    if (event->kind == PEG_EVENT_TOOL_ARGS)
        put_event(stage, "args %u %.*s %.*s +%.*s =%.*s; ", event->u.tool_args.sequence,
                  PEG_ARG(event->u.tool_args.call_id), PEG_ARG(event->u.tool_args.tool),
                  PEG_ARG(event->u.tool_args.delta), PEG_ARG(event->u.tool_args.full));
}

typedef void (*tell_fn)(struct peg__reply *reply);

/* Runs a turn whose model answers once as the function says. */
static peg_status answer(struct stage *stage, peg_dispatch *dispatch, peg_error *reterr)
{
    const struct peg__reply_def def = {
        .turn = peg_dispatch_turn(dispatch), .dispatch = dispatch, .vendor = PEG_VENDOR_GEMINI};
    struct peg__reply reply;
    peg_status status;

    peg__reply_init(&reply, &def);
    if (peg_dispatch_iteration(dispatch) == 0)
        (*(tell_fn *)stage->user)(&reply);
    status = peg__reply_finish(&reply, true, reterr);
    peg__reply_free(&reply);
    return status;
}

static peg_status run_answer(struct stage *stage, tell_fn *tell)
{
    peg_status status = stage_open(stage);

    stage->act = answer;
    stage->user = tell;
    stage->config.on_event = answer_growing;
    return status ? status : stage_run(stage);
}

static void tell_text(struct peg__reply *reply)
{
    think(reply, 0, "h");
    think(reply, 0, "m");
    say(reply, 1, "it ");
    say(reply, 1, "rains");
}

TEST(text_and_thoughts_are_told_as_they_come_and_completed)
{
    struct stage s;
    tell_fn tell = tell_text;

    CHECK_INT(run_answer(&s, &tell), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_STR(peg__str(s.log), "thought +h =h; thought +m =hm; message +it  =it ; "
                               "message +rains =it rains; thought + =hm done; "
                               "message + =it rains done; ");
    CHECK_STR(peg_block_id(peg_turn_last(s.turn, PEG_BLOCKS(PEG_BLOCK_ASSISTANT))), s.seen);
    stage_close(&s);
}

static void tell_calls(struct peg__reply *reply)
{
    struct peg__part *one = call(reply, 0, "c1", "echo");
    struct peg__part *two = call(reply, 1, "c2", "echo");

    peg__part_add(reply, one, peg_cstr("{\"a\":"));
    peg__part_add(reply, two, peg_cstr("{}"));
    peg__part_add(reply, one, peg_cstr("1}"));
    peg__part_set(reply, one, peg_cstr("{\"a\":1}"));
}

/* G128 */
TEST(arguments_are_told_as_they_grow_with_a_number_of_their_own_for_each_call)
{
    struct stage s;
    tell_fn tell = tell_calls;

    CHECK_INT(run_answer(&s, &tell), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_STR(peg__str(s.log), "args 1 c1 echo +{\"a\": ={\"a\":; args 1 c2 echo +{} ={}; "
                               "args 2 c1 echo +1} ={\"a\":1}; ");
    stage_close(&s);
}

static void tell_call_late(struct peg__reply *reply)
{
    struct peg__part *part = peg__reply_part(reply, 0, PEG__PART_CALL);

    peg__part_add(reply, part, peg_cstr("{"));
    peg__part_add_name(reply, part, peg_cstr("echo"));
    peg__part_add(reply, part, peg_cstr("}"));
    peg__part_set_call_id(reply, part, peg_cstr("c9"));
}

TEST(arguments_wait_until_the_call_has_an_id)
{
    struct stage s;
    tell_fn tell = tell_call_late;

    CHECK_INT(run_answer(&s, &tell), PEG_OK);

    CHECK_INT(s.outcome.end, PEG_END_ACK);
    CHECK_STR(peg__str(s.log), "args 1 c9 echo +{} ={}; ");
    stage_close(&s);
}

static void tell_corrections(struct peg__reply *reply)
{
    struct peg__part *part = peg__reply_part(reply, 0, PEG__PART_TEXT);

    peg__part_add(reply, part, peg_cstr("ab"));
    peg__part_set(reply, part, peg_cstr("abc"));
    peg__part_set(reply, part, peg_cstr("xyz"));
    peg__part_set(reply, part, peg_cstr("xyz!"));
}

TEST(a_final_word_is_told_as_far_as_it_continues_what_was_told)
{
    struct stage s;
    tell_fn tell = tell_corrections;

    CHECK_INT(run_answer(&s, &tell), PEG_OK);

    CHECK_STR(peg__str(s.log), "message +ab =ab; message +c =abc; message +! =abc!; "
                               "message + =abc! done; ");
    CHECK_STR(peg_block_text(peg_turn_last(s.turn, PEG_BLOCKS(PEG_BLOCK_ASSISTANT))), "xyz!");
    stage_close(&s);
}

TORTURE(telling_survives_any_allocation_failure)
{
    struct stage s;
    tell_fn tell = tell_calls;
    peg_status status = run_answer(&s, &tell);

    if (!status && s.outcome.end != PEG_END_ACK) {
        const peg_error *error = &s.outcome.error;

        CHECK(strcmp(error->code, "E_OUT_OF_MEMORY") == 0 ||
              strcmp(error->cause, "E_OUT_OF_MEMORY") == 0);
        status = PEG_ENOMEM;
    }
    stage_close(&s);
    return status;
}
