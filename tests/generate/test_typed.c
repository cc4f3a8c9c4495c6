/* SPDX-License-Identifier: Apache-2.0 */

/* What `pegboard generate` makes of constructs.yaml: decoded, encoded, served and called. */

#include "pegboard/typed.h"

#include "t.h"

#include <math.h>

#include "base/buf.h"
#include "base/text/str.h"
#include "client.h"
#include "pegboard/ctx.h"
#include "provider.h"

/* ---- fixture: one value there and back ----------------------------------------------------- */

struct trip {
    peg_arena *arena;
    peg_encoder *encoder;
    peg_json_doc *doc;
    const peg_json *value;
    peg_error error;
};

static peg_status trip_begin(struct trip *t, const char *json)
{
    *t = (struct trip){.arena = peg_arena_new(), .encoder = peg_encoder_new()};
    if (!t->arena || !t->encoder)
        return PEG_ENOMEM;
    return peg_arena_parse(t->arena, peg__str(json), &t->value, &t->error);
}

static void trip_end(struct trip *t)
{
    peg_encoder_free(t->encoder);
    peg_arena_free(t->arena);
}

/* Decodes and encodes the arguments of a tool; the text is in the encoder. */
#define TRIP(t, type, json)                                                                        \
    do {                                                                                           \
        type decoded_;                                                                             \
        CHECK_STATUS(trip_begin(t, json), PEG_OK, (t)->error);                                     \
        CHECK_STATUS(type##_decode((t)->value, (t)->arena, &decoded_, &(t)->error), PEG_OK,        \
                     (t)->error);                                                                  \
        type##_encode(&decoded_, (t)->encoder);                                                    \
    } while (0)

static void check_same(struct trip *t)
{
    const peg_json *back = NULL;
    peg_str text = peg__str("");

    CHECK_STATUS(peg_encoder_text(t->encoder, &text, &t->error), PEG_OK, t->error);
    CHECK_STATUS(peg_arena_parse(t->arena, text, &back, &t->error), PEG_OK, t->error);
    if (!peg_json_equal(t->value, back))
        T_FAIL("became %.*s", (int)text.len, text.ptr);
    trip_end(t);
}

#define CHECK_TRIP(type, json)                                                                     \
    do {                                                                                           \
        struct trip t_;                                                                            \
        TRIP(&t_, type, json);                                                                     \
        check_same(&t_);                                                                           \
    } while (0)

#define CHECK_FAILS(type, json, its_code, its_where, words)                                        \
    do {                                                                                           \
        struct trip t_;                                                                            \
        type decoded_;                                                                             \
        CHECK_STATUS(trip_begin(&t_, json), PEG_OK, t_.error);                                     \
        CHECK_INT(type##_decode(t_.value, t_.arena, &decoded_, &t_.error), PEG_ESCHEMA);           \
        CHECK_STR(peg__str(t_.error.code), its_code);                                              \
        CHECK_STR(peg__str(t_.error.where), its_where);                                            \
        CHECK(strstr(t_.error.message, words));                                                    \
        trip_end(&t_);                                                                             \
    } while (0)

/* ---- there and back ------------------------------------------------------------------------ */

TEST(scalars_come_back)
{
    CHECK_TRIP(all_scalars_args,
               "{\"text\":\"a\\u0000\\\"\\u00fc\",\"whole\":-9223372036854775808,\"number\":0.1,"
               "\"truth\":true,\"nothing\":null,\"any\":[{\"a\":[]}],\"choice\":\"two words\","
               "\"maybe\":null}");
    CHECK_TRIP(all_scalars_args, "{\"text\":\"\",\"whole\":3.0,\"number\":1e300,\"choice\":\"\"}");
    CHECK_TRIP(all_scalars_args, "{\"text\":\"\",\"whole\":1,\"any\":null,\"maybe\":7,"
                                 "\"choice\":\"\\u00fcn\\u00ef\"}");
}

TEST(containers_come_back)
{
    CHECK_TRIP(all_containers_args, "{}");
    CHECK_TRIP(all_containers_args,
               "{\"strings\":[],\"grid\":[[],[1,2.5],[-0.25]],\"maybe\":[null,\"a\"],"
               "\"counts\":{\"a\":1,\"b\":2},\"open\":{\"x\":{\"y\":[1]}},"
               "\"pairs\":[{\"k\":\"a\"},{\"k\":\"b\",\"t\":true,\"f\":false}]}");
}

TEST(unions_come_back)
{
    CHECK_TRIP(all_unions_args, "{\"shape\":{\"kind\":\"circle\",\"r\":2},\"mixed\":\"a\"}");
    CHECK_TRIP(all_unions_args, "{\"shape\":{\"w\":2,\"kind\":\"cube\"},\"mixed\":[1,\"a\"]}");
    CHECK_TRIP(all_unions_args, "{\"shape\":\"text\",\"mixed\":false,\"nullable\":null}");
    CHECK_TRIP(all_unions_args, "{\"mixed\":12,\"nullable\":{\"kind\":\"box\"}}");
    CHECK_TRIP(all_unions_args, "{\"tree\":{\"value\":1,\"left\":{\"value\":2},\"children\":"
                                "[{\"value\":3,\"children\":[]},{\"value\":4}]}}");
}

TEST(names_that_c_does_not_take_come_back)
{
    CHECK_TRIP(all_names_args,
               "{\"int\":1,\"2d\":\"a\",\"a-b\":\"b\",\"a_b\":\"c\",\"has_int\":\"d\","
               "\"quote\\\"\\\\\":\"e\",\"\":true,\"class\":false,\"others\":\"f\","
               "\"more\":\"g\",\"and more\":\"h\"}");
}

TEST(results_that_are_no_objects_come_back)
{
    CHECK_TRIP(all_text_result, "\"hello\"");
    CHECK_TRIP(all_any_result, "[1,{\"a\":null}]");
}

/* ---- what does not fit --------------------------------------------------------------------- */

TEST(a_number_that_its_type_cannot_hold_is_refused)
{
    CHECK_FAILS(all_scalars_args, "{\"text\":\"\",\"whole\":9223372036854775808}", "E_DECODE_RANGE",
                "/whole", "64 bits");
    CHECK_FAILS(all_scalars_args, "{\"text\":\"\",\"whole\":1,\"number\":1e400}", "E_DECODE_RANGE",
                "/number", "double");
    CHECK_FAILS(all_scalars_args, "{\"text\":\"\",\"whole\":1,\"number\":9007199254740993}",
                "E_DECODE_RANGE", "/number", "double");
}

/* Some 100 KB of JSON would be more than 64 MiB of structs. */
TEST(a_short_value_that_takes_much_memory_is_refused)
{
    const size_t least = ((size_t)64 << 20) / sizeof(all_wide_args_third) + 1;
    struct peg__buf text = PEG__BUF(1 << 20);
    all_wide_args decoded = {.has_items = false};
    struct trip t;

    peg__buf_puts(&text, "{\"items\":[{}");
    for (size_t i = 1; i < least; i++)
        peg__buf_puts(&text, ",{}");
    peg__buf_puts(&text, "]}");
    CHECK_STATUS(trip_begin(&t, text.ptr), PEG_OK, t.error);
    CHECK_INT(all_wide_args_decode(t.value, t.arena, &decoded, &t.error), PEG_ELIMIT);
    CHECK_STR(peg__str(t.error.code), "E_DECODE_LIMIT");
    CHECK(strstr(t.error.message, "PEG_LIMIT_TYPED_BYTES"));
    CHECK(!decoded.has_items && !peg_arena_has_failed(t.arena));
    trip_end(&t);

    CHECK_TRIP(all_wide_args, "{\"items\":[{},{\"a\":{\"b\":{\"c\":\"d\"}}}]}");
    peg__buf_free(&text);
}

TEST(what_is_empty_is_decoded_without_an_arena)
{
    peg_error error;
    peg_decoder d = {NULL, NULL, &error, PEG_OK};

    CHECK(!peg_decode_alloc(&d, 0, 16));
    CHECK_INT(d.status, PEG_OK);
}

TEST(all_that_is_decoded_with_an_arena_counts)
{
    peg_arena *arena = peg_arena_new();
    peg_error error;
    peg_decoder d = {arena, NULL, &error, PEG_OK};

    CHECK(peg_decode_alloc(&d, 48 << 20, 1));
    CHECK(!peg_decode_alloc(&d, SIZE_MAX / 2, 16));
    CHECK_INT(d.status, PEG_ELIMIT);
    d.status = PEG_OK;
    CHECK(!peg_decode_alloc(&d, 17 << 20, 1));
    CHECK_INT(d.status, PEG_ELIMIT);
    d.status = PEG_OK;
    CHECK(peg_decode_alloc(&d, 16 << 20, 1));
    CHECK_INT(d.status, PEG_OK);
    peg_arena_free(arena);
}

TEST(what_is_of_another_type_is_refused_with_its_place)
{
    CHECK_FAILS(all_scalars_args, "{\"text\":1,\"whole\":1}", "E_DECODE", "/text", "a string");
    CHECK_FAILS(all_scalars_args, "{\"text\":\"\",\"whole\":1.5}", "E_DECODE", "/whole", "whole");
    CHECK_FAILS(all_scalars_args, "{\"text\":\"\"}", "E_DECODE", "", "'whole' is missing");
    CHECK_FAILS(all_scalars_args, "[]", "E_DECODE", "", "an object, got array");
    CHECK_FAILS(all_scalars_args, "{\"text\":\"\",\"whole\":1,\"choice\":\"three\"}", "E_DECODE",
                "/choice", "one of");
    CHECK_FAILS(all_containers_args, "{\"grid\":[[1],[2,true]]}", "E_DECODE", "/grid/1/1",
                "a number");
    CHECK_FAILS(all_unions_args, "{\"shape\":{\"kind\":\"oval\"}}", "E_DECODE", "/shape",
                "alternatives");
    CHECK_FAILS(all_unions_args, "{\"tree\":{\"value\":1,\"left\":{}}}", "E_DECODE", "/tree/left",
                "'value'");
}

static void check_unwritable(const all_scalars_args *args, const char *code)
{
    peg_encoder *encoder = peg_encoder_new();
    peg_error error;
    peg_str text;

    all_scalars_args_encode(args, encoder);
    CHECK(peg_encoder_text(encoder, &text, &error));
    CHECK_STR(peg__str(error.code), code);
    peg_encoder_free(encoder);
}

TEST(what_is_no_json_is_not_encoded)
{
    check_unwritable(&(all_scalars_args){.text = {"\xff", 1}}, "E_JSON_UTF8");
    check_unwritable(&(all_scalars_args){.has_number = true, .number = (double)NAN},
                     "E_JSON_NUMBER");
    check_unwritable(&(all_scalars_args){.has_choice = true, .choice = (all_scalars_args_choice)9},
                     "E_ENCODE");
}

TEST(a_value_that_contains_itself_is_not_encoded_for_ever)
{
    all_unions_args_tree tree = {.value = 1, .has_left = true};
    all_unions_args args = {.has_tree = true};
    peg_encoder *encoder = peg_encoder_new();
    peg_error error;
    peg_str text;

    tree.left = &tree;
    args.tree = tree;
    all_unions_args_encode(&args, encoder);

    CHECK_INT(peg_encoder_text(encoder, &text, &error), PEG_ELIMIT);
    CHECK_STR(peg__str(error.code), "E_JSON_TOO_DEEP");
    peg_encoder_free(encoder);
}

/* ---- served and called --------------------------------------------------------------------- */

int all_scalars_run(const all_scalars_args *args, all_scalars_result *result, peg_call *call,
                    void *user)
{
    (void)user;
    (void)args;
    (void)result;
    peg_call_fail(call, "no scalars today");
    return 1;
}

int all_containers_run(const all_containers_args *args, all_containers_result *result,
                       peg_call *call, void *user)
{
    (void)args;
    (void)result;
    (void)call;
    (void)user;
    return 1;
}

int all_wide_run(const all_wide_args *args, all_wide_result *result, peg_call *call, void *user)
{
    (void)args;
    (void)result;
    (void)call;
    (void)user;
    return 1;
}

int all_unions_run(const all_unions_args *args, all_unions_result *result, peg_call *call,
                   void *user)
{
    (void)args;
    (void)result;
    (void)user;
    return peg_call_reply(call, peg__str("plain text")) != PEG_OK;
}

int all_names_run(const all_names_args *args, all_names_result *result, peg_call *call, void *user)
{
    (void)call;
    result->arena_2 = peg_arena_printf(result->arena, "%s %d others", (const char *)user,
                                       (int)args->others_2.len);
    result->server_data.has_notes = args->class_;
    result->server_data.notes = peg_arena_copy(result->arena, args->_2d);
    return 0;
}

int all_text_run(const all_text_args *args, all_text_result *result, peg_call *call, void *user)
{
    (void)args;
    (void)call;
    (void)user;
    result->value = peg_cstr("text");
    return 0;
}

int all_any_run(const all_any_args *args, all_any_result *result, peg_call *call, void *user)
{
    (void)args;
    (void)call;
    (void)user;
    return peg_arena_parse(result->arena, peg__str("{\"a\":[1]}"), &result->value, NULL) != PEG_OK;
}

struct world {
    peg_registry *registry;
    peg_ctx *client;
    peg_error error;
};

static char user[] = "with";

static peg_status world_begin(struct world *w)
{
    peg_status status;

    *w = (struct world){.registry = NULL};
    status = all_registry_new(user, &w->registry, &w->error);
    if (!status)
        status = peg_ctx_with_registry(NULL, w->registry, &w->client, &w->error);
    return status;
}

static void world_end(struct world *w)
{
    peg_ctx_unref(w->client);
    peg_registry_unref(w->registry);
}

static peg_status call_names(struct world *w, all_names_result *ret_result)
{
    static const peg_str more_names[] = {PEG_LIT("more")};
    static const peg_str more_values[] = {PEG_LIT("values")};
    all_names_args args = {.has_class_ = true, .class_ = true, .has__2d = true};

    args._2d = peg_cstr("a note");
    args.others_2.names = more_names;
    args.others_2.values = more_values;
    args.others_2.len = 1;
    return all_names(w->client, &args, ret_result, &w->error);
}

TEST(a_tool_is_served_and_called_with_its_server_data)
{
    struct world w;
    all_names_result result;

    CHECK_STATUS(world_begin(&w), PEG_OK, w.error);
    CHECK_STATUS(call_names(&w, &result), PEG_OK, w.error);

    CHECK_STR(result.arena_2, "with 1 others");
    CHECK(result.server_data.has_notes);
    CHECK_STR(result.server_data.notes, "a note");
    all_names_result_free(&result);
    CHECK(!result.arena);
    world_end(&w);
}

TEST(server_data_that_is_optional_may_be_missing)
{
    struct world w;
    all_names_args args = {.has_int_ = false};
    all_names_result result;

    CHECK_STATUS(world_begin(&w), PEG_OK, w.error);
    CHECK_STATUS(all_names(w.client, &args, &result, &w.error), PEG_OK, w.error);

    CHECK(!result.server_data.has_notes);
    all_names_result_free(&result);
    world_end(&w);
}

TEST(results_are_any_json)
{
    struct world w;
    all_text_result text;
    all_any_result any;
    all_unions_result plain;

    CHECK_STATUS(world_begin(&w), PEG_OK, w.error);
    CHECK_STATUS(all_text(w.client, &(all_text_args){0}, &text, &w.error), PEG_OK, w.error);
    CHECK_STATUS(all_any(w.client, &(all_any_args){0}, &any, &w.error), PEG_OK, w.error);
    CHECK_STATUS(all_unions(w.client, &(all_unions_args){0}, &plain, &w.error), PEG_OK, w.error);

    CHECK_STR(text.value, "text");
    CHECK_INT(peg_json_len(peg_json_get(any.value, "a")), 1);
    CHECK_STR(peg_json_str(plain.value), "plain text");
    all_text_result_free(&text);
    all_any_result_free(&any);
    all_unions_result_free(&plain);
    world_end(&w);
}

TEST(a_handler_that_fails_is_an_error_of_the_call)
{
    struct world w;
    all_scalars_result scalars;
    all_containers_result containers;

    CHECK_STATUS(world_begin(&w), PEG_OK, w.error);

    CHECK_INT(all_scalars(w.client, &(all_scalars_args){.whole = 1}, &scalars, &w.error),
              PEG_EHOST);
    CHECK_STR(peg__str(w.error.code), "E_TYPED_CALL");
    CHECK(strstr(w.error.message, "no scalars today"));
    CHECK_INT(all_containers(w.client, &(all_containers_args){0}, &containers, &w.error),
              PEG_EHOST);
    CHECK(strstr(w.error.message, "gave no reason"));
    world_end(&w);
}

TEST(arguments_that_the_schema_refuses_are_an_error_of_the_call)
{
    struct world w;
    all_names_result result;
    static const peg_str name[] = {PEG_LIT("int")};
    static const peg_str value[] = {PEG_LIT("text")};
    all_names_args args = {.has_int_ = false};

    args.others_2.names = name;
    args.others_2.values = value;
    args.others_2.len = 1;
    CHECK_STATUS(world_begin(&w), PEG_OK, w.error);

    CHECK_INT(all_names(w.client, &args, &result, &w.error), PEG_EHOST);
    CHECK_STR(peg__str(w.error.cause), "E_INVALID_TOOL_ARGS");
    world_end(&w);
}

/* ---- memory -------------------------------------------------------------------------------- */

TORTURE(decoding_and_encoding_survive_any_allocation_failure)
{
    struct trip t;
    all_unions_args unions;
    all_containers_args containers;
    peg_str text;
    peg_status status = trip_begin(
        &t, "{\"shape\":{\"kind\":\"circle\",\"r\":2},\"mixed\":[1,2],\"tree\":{\"value\":1,"
            "\"left\":{\"value\":2},\"children\":[{\"value\":3}]}}");

    if (!status)
        status = all_unions_args_decode(t.value, t.arena, &unions, &t.error);
    if (!status) {
        all_unions_args_encode(&unions, t.encoder);
        status = peg_encoder_text(t.encoder, &text, &t.error);
    }
    if (!status)
        status = peg_arena_parse(t.arena,
                                 peg__str("{\"strings\":[\"a\"],\"counts\":{\"a\":1},"
                                          "\"pairs\":[{\"k\":\"a\",\"t\":true}]}"),
                                 &t.value, &t.error);
    if (!status)
        status = all_containers_args_decode(t.value, t.arena, &containers, &t.error);
    trip_end(&t);
    return status;
}

TORTURE(a_typed_call_survives_any_allocation_failure)
{
    struct world w;
    all_names_result result;
    peg_status status = world_begin(&w);

    if (!status)
        status = call_names(&w, &result);
    if (!status)
        all_names_result_free(&result);
    world_end(&w);
    /* Without memory for its answer the call itself may fail, and say so. */
    return status == PEG_EHOST && strstr(w.error.message, "memory") ? PEG_ENOMEM : status;
}
