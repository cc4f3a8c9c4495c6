/* SPDX-License-Identifier: Apache-2.0 */

/* Artifacts become tools: what does not go together, and when tools are made anew. */

#include "base/limits.h"
#include "shelf.h"

/* ---- which do not go together
 * ------------------------------------------------------------------------ */

/* T130 */
TEST(forge_refuses_two_artifacts_with_one_handle)
{
    struct shelf s;
    peg_error error;

    fill(&s);
    CHECK_INT(put(&s, NULL, "call_a", "another"), PEG_OK);
    CHECK_INT(peg__forge(s.w.registry, s.items, s.n, &s.n_shadowed, &error), PEG_EEXISTS);

    CHECK_STR(peg__str(error.code), "E_ARTIFACT_ID_COLLISION");
    CHECK_CONTAINS(peg__str(error.message), "'call_a'");
    CHECK_IDS(&s, "artifact_head", "call_a", "call_j", "call_b"); /* as it was */
    drop(&s);
}

TEST(forge_refuses_a_handle_that_is_not_utf8)
{
    struct shelf s;
    peg_error error;

    fill(&s);
    CHECK_INT(put(&s, NULL, "\xFF", "another"), PEG_OK);
    CHECK_INT(peg__forge(s.w.registry, s.items, s.n, NULL, &error), PEG_EINVAL);

    CHECK_STR(peg__str(error.code), "E_INVALID_ARGUMENT");
    CHECK_INT(peg_registry_len(s.w.registry), 14);
    drop(&s);
}

TEST(forge_takes_any_other_handle)
{
    struct shelf s = {0};

    CHECK_INT(world_open(&s.w), PEG_OK);
    CHECK_INT(put(&s, NULL, "a \"quoted\" \\ \n handle", "x"), PEG_OK);
    CHECK_INT(put(&s, NULL, "日本", "y"), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);

    CHECK_IDS(&s, "artifact_head", "a \"quoted\" \\ \n handle", "日本");
    check_call(&s, "artifact_head", "{\"callId\":\"\\u65e5本\"}", "y");
    drop(&s);
}

TEST(forge_refuses_too_many_artifacts)
{
    struct peg__forge_item *items = peg__alloc_zero(PEG_LIMIT_FORGED_ARTIFACTS + 1, sizeof(*items));
    struct world w;
    peg_error error;

    CHECK_INT(world_open(&w), PEG_OK);
    CHECK_INT(peg__forge(w.registry, items, PEG_LIMIT_FORGED_ARTIFACTS + 1, NULL, &error),
              PEG_ELIMIT);

    CHECK_STR(peg__str(error.code), "E_TEXT_TOO_LARGE");
    CHECK_CONTAINS(peg__str(error.message), "artifacts, more than 10000");
    world_close(&w);
    peg__free(items);
}

TEST(forge_refuses_handles_that_are_too_long_together)
{
    struct peg__buf handle = PEG__BUF(PEG_LIMIT_TEXT_BYTES);
    struct shelf s;
    peg_error error;

    peg__buf_repeat(&handle, 'x', PEG_LIMIT_FORGED_BYTES + 1);
    fill(&s);
    CHECK_INT(put(&s, NULL, handle.ptr, "text"), PEG_OK);
    CHECK_INT(peg__forge(s.w.registry, s.items, s.n, NULL, &error), PEG_ELIMIT);

    CHECK_STR(peg__str(error.code), "E_TEXT_TOO_LARGE");
    CHECK_CONTAINS(peg__str(error.message), " bytes; shorten");
    CHECK_INT(peg_registry_len(s.w.registry), 14);
    drop(&s);
    peg__buf_free(&handle);
}

static void say_mine(peg_call *call, const peg_json *args, void *user)
{
    (void)args;
    (void)user;
    peg_call_reply(call, peg__str("mine"));
}

TEST(forge_leaves_a_tool_of_the_host_that_has_the_name_of_a_query)
{
    struct shelf s = {0};

    CHECK_INT(world_open(&s.w), PEG_OK);
    CHECK_INT(world_add_fn(&s.w, "artifact_head", NULL, say_mine), PEG_OK);
    CHECK_INT(put(&s, NULL, "c1", "text"), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);

    CHECK_INT(s.n_shadowed, 1);
    CHECK_INT(peg_registry_len(s.w.registry), 7);
    s.n_shadowed = 0;
    CHECK_INT(forge(&s), PEG_OK); /* nothing changed */
    CHECK_INT(s.n_shadowed, 1);
    CHECK_INT(peg_registry_unregister(s.w.registry, peg__str("artifact_head"), NULL), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);
    CHECK_INT(s.n_shadowed, 0);
    CHECK_IDS(&s, "artifact_head", "c1");
    drop(&s);
}

/* ---- kinds of the host
 * ------------------------------------------------------------------------------------ */

static void answer_kind(peg_call *call, peg_artifact *artifact, const peg_json *args)
{
    const peg_json *loud = peg_json_get(args, "loud");

    peg_call_replyf(call, "%s%s", peg_artifact_kind_of(artifact)->name,
                    loud && peg_json_is_true(loud) ? "!" : "");
}

static const peg_artifact_query log_queries[] = {
    {.name = "log_kind",
     .description = "What kind it is.",
     .properties = " { \"loud\" : {\"type\":\"boolean\",\"description\":\"whether to shout\"} } ",
     .required = " [ \"loud\" ] ",
     .run = answer_kind},
    {.name = "log_plain", .description = "What kind it is.", .run = answer_kind},
};
static const peg_artifact_kind log_kind = {.name = "log", .queries = log_queries, .n_queries = 2};

static const peg_artifact_query rows_queries[] = {{.name = "rows_kind",
                                                   .description = "What kind it is.",
                                                   .properties = "{}",
                                                   .required = "[]",
                                                   .run = answer_kind}};
static const peg_artifact_kind rows_kind = {
    .name = "rows", .base = &peg_artifact_json, .queries = rows_queries, .n_queries = 1};

/* Has the name of a query of log_kind, which is neither its base nor made from it. */
static const peg_artifact_query trace_queries[] = {
    {.name = "log_plain", .description = "What kind it is.", .run = answer_kind}};
static const peg_artifact_kind trace_kind = {
    .name = "trace", .queries = trace_queries, .n_queries = 1};

static const peg_artifact_kind silent_kind = {.name = "silent", .base = &log_kind};

TEST(forge_offers_the_queries_of_a_kind_of_the_host)
{
    struct shelf s = {0};

    CHECK_INT(world_open(&s.w), PEG_OK);
    CHECK_INT(put(&s, &log_kind, "l", "text"), PEG_OK);
    CHECK_INT(put(&s, &rows_kind, "r", "1\n2"), PEG_OK);
    CHECK_INT(put(&s, &silent_kind, "s", "text"), PEG_OK);
    CHECK_INT(put(&s, &peg_artifact_json, "j", "3"), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);

    CHECK_INT(peg_registry_len(s.w.registry), 7 + 7 + 2 + 1);
    CHECK_IDS(&s, "artifact_cat", "l", "r", "s", "j");
    CHECK_IDS(&s, "artifact_json_get", "r", "j");
    CHECK_IDS(&s, "log_kind", "l", "s");
    CHECK_IDS(&s, "rows_kind", "r");
    check_call(&s, "log_kind", "{\"callId\":\"s\",\"loud\":true}", "silent!");
    check_call(&s, "log_kind", "{\"callId\":\"s\"}", "E_INVALID_TOOL_ARGS: ");
    check_call(&s, "log_plain", "{\"callId\":\"l\"}", "log");
    check_call(&s, "rows_kind", "{\"callId\":\"r\"}", "rows");
    check_call(&s, "artifact_json_length", "{\"callId\":\"r\"}", "2");
    drop(&s);
}

TEST(forge_gives_a_name_of_two_kinds_to_the_first)
{
    struct shelf s = {0};

    CHECK_INT(world_open(&s.w), PEG_OK);
    CHECK_INT(put(&s, &log_kind, "l", "text"), PEG_OK);
    CHECK_INT(put(&s, &trace_kind, "t", "text"), PEG_OK);
    CHECK_INT(put(&s, &log_kind, "l2", "text"), PEG_OK);
    CHECK_INT(put(&s, &trace_kind, "t2", "text"), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);

    CHECK_INT(s.n_shadowed, 1);
    CHECK_INT(peg_registry_len(s.w.registry), 9);
    CHECK_IDS(&s, "log_plain", "l", "l2");
    CHECK_IDS(&s, "artifact_head", "l", "t", "l2", "t2");
    s.n_shadowed = 0;
    CHECK_INT(forge(&s), PEG_OK);
    CHECK_INT(s.n_shadowed, 1);
    drop(&s);
}

/* ---- again and again
 * -------------------------------------------------------------------------------------- */

TEST(forge_keeps_the_tools_while_nothing_changes)
{
    struct shelf s;
    peg_tool *before;
    peg_tool *after;

    fill(&s);
    before = peg_registry_get(s.w.registry, peg__str("artifact_grep"));
    CHECK_INT(forge(&s), PEG_OK);
    after = peg_registry_get(s.w.registry, peg__str("artifact_grep"));

    CHECK(before == after);
    peg_tool_unref(before);
    peg_tool_unref(after);
    drop(&s);
}

TEST(forge_follows_the_artifacts)
{
    struct shelf s;

    fill(&s);
    CHECK_INT(put(&s, NULL, "call_c", "more"), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);
    CHECK_INT(peg_registry_len(s.w.registry), 14);
    CHECK_IDS(&s, "artifact_head", "call_a", "call_j", "call_b", "call_c");
    check_call(&s, "artifact_head", "{\"callId\":\"call_c\"}", "more");

    /* The JSON goes, and with it what only JSON can be asked. */
    peg_artifact_unref(s.items[1].artifact);
    s.items[1] = s.items[3];
    s.n = 3;
    CHECK_INT(forge(&s), PEG_OK);
    CHECK_INT(peg_registry_len(s.w.registry), 7);
    CHECK_IDS(&s, "artifact_head", "call_a", "call_c", "call_b");

    CHECK_INT(peg__forge(s.w.registry, NULL, 0, &s.n_shadowed, NULL), PEG_OK);
    CHECK_INT(peg_registry_len(s.w.registry), 0);
    drop(&s);
}

TEST(forge_notices_another_artifact_under_a_handle)
{
    struct shelf s;

    fill(&s);
    peg_artifact_unref(s.items[0].artifact);
    s.n = 0;
    CHECK_INT(put(&s, NULL, "call_a", "replaced"), PEG_OK);
    s.n = 3;
    CHECK_INT(forge(&s), PEG_OK);

    check_call(&s, "artifact_head", "{\"callId\":\"call_a\"}", "replaced");
    drop(&s);
}

TEST(forge_brings_back_a_tool_that_somebody_took_away)
{
    struct shelf s;

    fill(&s);
    CHECK_INT(peg_registry_unregister(s.w.registry, peg__str("artifact_grep"), NULL), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);

    CHECK_INT(peg_registry_len(s.w.registry), 14);
    CHECK(peg_registry_has(s.w.registry, peg__str("artifact_grep")));
    drop(&s);
}

TEST(forge_comes_back_after_all_ephemeral_tools_were_pruned)
{
    struct shelf s;

    fill(&s);
    peg_registry_prune_ephemeral(s.w.registry);
    CHECK_INT(peg_registry_len(s.w.registry), 0);
    CHECK_INT(forge(&s), PEG_OK);

    CHECK_INT(peg_registry_len(s.w.registry), 14);
    drop(&s);
}

TEST(forge_leaves_other_ephemeral_tools_and_hidden_marks)
{
    static const char *const hidden[] = {"artifact_tail"};
    const peg_tool_def def = {PEG_TOOL_DEF_INIT, .name = "mine", .description = "a tool",
                              .run = say_mine, .ephemeral = true};
    struct shelf s;
    peg_tool_list list;

    fill(&s);
    CHECK_INT(world_add(&s.w, &def), PEG_OK);
    CHECK_INT(peg_registry_hide(s.w.registry, hidden, 1, NULL), PEG_OK);
    CHECK_INT(put(&s, NULL, "call_c", "more"), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);

    CHECK(peg_registry_has(s.w.registry, peg__str("mine")));
    CHECK_INT(peg_registry_hidden(s.w.registry, &list, NULL), PEG_OK);
    CHECK_INT(list.len, 1);
    CHECK_STR(peg__str(peg_tool_name(list.items[0])), "artifact_tail");
    peg_tool_list_free(&list);
    drop(&s);
}

static size_t count_nothing(peg_str text, void *user)
{
    (void)text;
    (void)user;
    return 7;
}

TEST(forge_lists_the_encodings_that_are_registered)
{
    struct shelf s;

    fill(&s);
    check_call(&s, "artifact_estimate_tokens", "{\"callId\":\"call_a\",\"encoding\":\"house\"}",
               "E_INVALID_TOOL_ARGS: ");
    CHECK_INT(peg_token_counter_register("house", count_nothing, NULL, NULL), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);
    check_call(&s, "artifact_estimate_tokens", "{\"callId\":\"call_a\",\"encoding\":\"house\"}",
               "7");
    CHECK_INT(peg_token_counter_register("house", NULL, NULL, NULL), PEG_OK);
    CHECK_INT(forge(&s), PEG_OK);

    check_call(&s, "artifact_estimate_tokens", "{\"callId\":\"call_a\",\"encoding\":\"house\"}",
               "E_INVALID_TOOL_ARGS: ");
    drop(&s);
}

/* A call that runs on when the dispatch has moved on keeps what it asks about. */
TEST(forged_tool_outlives_its_registry_and_its_artifacts)
{
    struct shelf s;
    peg_registry *copy = NULL;

    fill(&s);
    CHECK_INT(peg_registry_copy(s.w.registry, &copy, NULL), PEG_OK);
    for (size_t i = 0; i < s.n; i++)
        peg_artifact_unref(s.items[i].artifact);
    s.n = 0;
    CHECK_INT(forge(&s), PEG_OK);
    CHECK_INT(peg_registry_len(s.w.registry), 0);

    CHECK_INT(peg_registry_len(copy), 14);
    peg_registry_unref(s.w.registry);
    s.w.registry = copy;
    {
        peg_ctx *ctx = NULL;

        CHECK_INT(peg_ctx_with_registry(s.w.heard, copy, &ctx, NULL), PEG_OK);
        peg_ctx_unref(s.w.ctx);
        s.w.ctx = ctx;
    }
    check_call(&s, "artifact_head", "{\"callId\":\"call_a\"}", "one\ntwo\nthree");
    drop(&s);
}

/* ---- out of memory
 * ------------------------------------------------------------------------------------------ */

TORTURE(forge_survives_any_allocation_failure)
{
    struct shelf s = {0};
    peg_status status = world_open(&s.w);

    if (!status && !(status = put(&s, NULL, "a", "x")) &&
        !(status = put(&s, &rows_kind, "b", "{}")))
        status = forge(&s);
    if (status && s.w.registry)
        CHECK_INT(peg_registry_len(s.w.registry), 0);
    if (!status)
        CHECK_INT(peg_registry_len(s.w.registry), 15);
    drop(&s);
    return status;
}

TORTURE(forge_again_survives_any_allocation_failure)
{
    struct shelf s = {0};
    peg_status status = world_open(&s.w);

    if (!status && !(status = put(&s, NULL, "a", "x")) && !(status = forge(&s)) &&
        !(status = forge(&s)) && !(status = put(&s, NULL, "b", "y"))) {
        status = forge(&s);
        if (status)
            CHECK_IDS(&s, "artifact_head", "a"); /* as it was */
        else
            CHECK_IDS(&s, "artifact_head", "a", "b");
    }
    drop(&s);
    return status;
}
